// A thread of sampler-pool.ts: keeps the samplers of its requests and chooses their tokens from the logits where libllama has
// left them. Sleeps between steps. Whatever is thrown ends it, and the pool with it; it is sent as a message, since Node 20 aborts
// the whole process where an uncaught exception meets `terminate`.

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { createPrng } from '../../../lib/prng.ts';
import { viewFloats } from '../library/native-arrays.ts';
import { CandidateList } from './candidate-list.ts';
import { type SamplerMessage, type SamplerReport, SamplerStep } from './sampler-step.ts';
import { TokenSampler } from './token-sampler.ts';

export interface SamplerWorkerData {
  readonly buffer: SharedArrayBuffer;
  readonly worker: number;
  readonly tokenCount: number;
}

const { buffer, worker, tokenCount } = workerData as SamplerWorkerData;
const step = new SamplerStep(buffer);
const candidates = new CandidateList(tokenCount);
const samplers = new Map<number, TokenSampler>();
let view: { readonly address: bigint; readonly logits: Float32Array } = {
  address: 0n,
  logits: new Float32Array(0),
};

report({ kind: 'ready' });
run();

function run(): void {
  for (let seen = 0; ; ) {
    seen = step.waitForWake(worker, seen);
    if (step.isStopped) return;
    try {
      readMessages();
      chooseTokens();
    } catch (thrown) {
      report({ kind: 'failed', reason: (thrown as Error).message });
      step.reportDone(true);
      return;
    }
    step.reportDone(false);
  }
}

function report(news: SamplerReport): void {
  parentPort!.postMessage(news);
}

/** The thread never comes back to its event loop, so it asks for them. */
function readMessages(): void {
  for (;;) {
    const received = receiveMessageOnPort(parentPort!) as { message: SamplerMessage } | undefined;
    if (received === undefined) return;
    const { message } = received;
    if (message.kind === 'end') {
      samplers.delete(message.id);
      continue;
    }
    const { settings, prompt, seed } = message.spec;
    samplers.set(message.id, new TokenSampler(settings, prompt, createPrng(seed), candidates));
  }
}

function chooseTokens(): void {
  const logits = readLogits();
  for (let i = 0; i < step.rowCount; i++) {
    const row = step.row(i);
    if (row.worker !== worker) continue;
    const sampler = samplers.get(row.id)!;
    const begin = row.output * tokenCount;
    const token = sampler.choose(logits.subarray(begin, begin + tokenCount));
    sampler.accept(token);
    step.setToken(i, token);
  }
}

function readLogits(): Float32Array {
  const { address, outputCount } = step.logits;
  const length = outputCount * tokenCount;
  if (address !== view.address || length > view.logits.length) {
    view = { address, logits: viewFloats(address, length) };
  }
  return view.logits;
}
