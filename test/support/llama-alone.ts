// libllama run alone: its own process, one context, one sequence, no batching, no cache, the largest logit at each step.
// What a greedy generation of the server is compared with. Run as a program it reads a Job from its
// first argument and prints one Generated per prompt; `generateAlone` does that.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LlamaContext } from '../../src/backends/llama/library/context.ts';
import { loadLibrary } from '../../src/backends/llama/library/libllama.ts';
import { LlamaModel } from '../../src/backends/llama/library/model.ts';

const CELLS = 1024;
const ROWS = 512;
const RIVALS = 3;
/** With more, threads that wait for each other crawl on a busy machine; the numbers are the same. */
const THREADS = 1;

interface Job {
  readonly file: string;
  readonly prompts: readonly string[];
  readonly tokensMax: number;
  /** Goes on after the end of the text. */
  readonly isEndIgnored?: boolean;
}

/** A token that might have come, and how far its logit was below the largest. */
interface Rival {
  readonly token: number;
  readonly margin: number;
}

export interface Generated {
  readonly tokens: readonly number[];
  /** By token: the next best ones. */
  readonly rivals: readonly (readonly Rival[])[];
  readonly text: string;
  readonly isEnded: boolean;
}

export async function generateAlone(job: Job): Promise<Generated[]> {
  const program = fileURLToPath(import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify(job)], {
    maxBuffer: 64 * 1024 * 1024,
    timeout: 120_000,
  });
  return JSON.parse(stdout) as Generated[];
}

async function run(job: Job): Promise<void> {
  const library = loadLibrary(undefined, () => {});
  const model = await LlamaModel.load(library, job.file, {
    ...{ gpuLayers: 0, splitMode: 'none', mainGpu: 0, tensorSplit: [] },
    ...{ isMemoryMapped: true, isMemoryLocked: false, onProgress: () => {} },
  });
  const context = LlamaContext.create(model, {
    ...{
      cellCount: CELLS,
      sequenceCount: 1,
      stepTokensMax: ROWS,
      threadCount: THREADS,
      batchThreadCount: THREADS,
    },
    ...{ cacheTypeK: 'f16', cacheTypeV: 'f16', flashAttention: 'auto', pooling: 'unspecified' },
    ...{ isEmbedding: false, hasDevice: false, outputsPerSequenceMax: 1, deviceSampledCount: 0 },
  });
  const generated: Generated[] = [];
  for (const prompt of job.prompts) generated.push(await generate(context, prompt, job));
  process.stdout.write(JSON.stringify(generated));
}

async function generate(context: LlamaContext, prompt: string, job: Job): Promise<Generated> {
  const { model } = context;
  const tokens: number[] = [];
  const rivals: Rival[][] = [];
  const pieces: Buffer[] = [];
  let next = model.tokenize(prompt, { isSpecialAdded: true, isSpecialParsed: true });
  let position = 0;
  let isEnded = false;
  context.clearCells();
  while (tokens.length < job.tokensMax && !isEnded) {
    context.beginBatch();
    for (const [i, token] of next.entries()) context.addRow(token, position + i, 0, i === next.length - 1);
    position += next.length;
    const code = await context.decode();
    if (code !== 0) throw new Error(`decode answered ${code}`);
    await context.finishCompute();
    context.readLogits();
    const [best, ...others] = bestOf(context.logitsOf(0));
    tokens.push(best!.token);
    rivals.push(others);
    isEnded = job.isEndIgnored !== true && model.isEndOfGeneration(best!.token);
    if (!isEnded) pieces.push(model.piece(best!.token, false));
    next = [best!.token];
  }
  return { tokens, rivals, text: Buffer.concat(pieces).toString(), isEnded };
}

function bestOf(logits: Float32Array): Rival[] {
  const best: number[] = [];
  for (let rank = 0; rank <= RIVALS; rank++) {
    let top = -1;
    for (let i = 0; i < logits.length; i++) {
      if (!best.includes(i) && (top < 0 || logits[i]! > logits[top]!)) top = i;
    }
    best.push(top);
  }
  return best.map((token) => ({ token, margin: logits[best[0]!]! - logits[token]! }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run(JSON.parse(process.argv[2]!) as Job);
