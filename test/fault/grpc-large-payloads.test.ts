// Many clients with large tensors at once, of which the server uses the memory again: each gets back what it sent, whatever happens
// to the others and wherever their tensors are kept meanwhile. Contents and sizes are all different, so that memory which
// is used too early shows.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import {
  decodeAnswer,
  drop,
  encodeRequest,
  framed,
  GrpcClient,
  openRaw,
  openSession,
  rawAnswer,
} from '../support/grpc.ts';
import { call } from '../support/load.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** At about 600 kB each they are far more than what the server leaves to its collector. */
const WORKERS = 24;
const REQUESTS_EACH = 30;
/** Words of four bytes: small ones, some around the sizes at which the way changes, and one beyond the shared slots. */
const WORD_COUNTS = [4, 8_000, 16_384, 16_390, 40_000, 150_000, 150_001, 400_000, 2_200_000];
const SLOW_READERS = 6;
const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;

const MODELS = ['plain', 'batched', 'ordered', 'slow', 'cached', 'routed', 'chained'];

/** No two of different seeds agree in any word that they have at the same place. */
function contentOf(seed: number, wordCount: number): Buffer {
  const words = new Uint32Array(wordCount);
  for (let i = 0; i < wordCount; i++) words[i] = Math.imul(i, 0x9e37_79b1) ^ (seed << 8);
  return Buffer.from(words.buffer);
}

function requestOf(model: string, content: Buffer): Buffer {
  const shape = [1, content.length / 4];
  return encodeRequest(model, [{ name: 'INPUT0', datatype: 'FP32', shape, bytes: content }]);
}

function outputOf(bytes: Buffer): Buffer {
  return Buffer.from(decodeAnswer(bytes).raw_output_contents[0]!);
}

function addConfig(repository: TestRepository, name: string, config: string): void {
  mkdirSync(repository.at(name, '1'), { recursive: true });
  writeFileSync(repository.at(name, 'config.pbtxt'), config);
}

const STEP = (from: string, to: string) => `step [ {
  model_name: "plain" model_version: -1
  input_map { key: "INPUT0" value: "${from}" } output_map { key: "OUTPUT0" value: "${to}" }
} ]`;

function addModels(repository: TestRepository): void {
  addIdentity(repository, { name: 'plain' });
  addIdentity(repository, {
    name: 'batched',
    config: 'dynamic_batching { max_queue_delay_microseconds: 2000 }',
  });
  addIdentity(repository, { name: 'ordered', config: 'dynamic_batching { preserve_ordering: true }' });
  addIdentity(repository, { name: 'slow', delayMs: 4 });
  addIdentity(repository, { name: 'cached', config: 'response_cache { enable: true }' });
  // The shadow is slower than the target, and reads the same bytes.
  addConfig(
    repository,
    'routed',
    'platform: "router" router { target { model: "plain" weight: 1 } shadow { model: "slow" max_inflight_requests: 8 } }',
  );
  addConfig(
    repository,
    'chained',
    `platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { ${STEP('INPUT0', 'between')} ${STEP('between', 'OUTPUT0')} }
`,
  );
}

describe('large tensors of many clients at once', () => {
  let repository: TestRepository;
  let server: RunningServer;
  let clients: GrpcClient[];

  before(async () => {
    repository = createRepository();
    addModels(repository);
    const args = ['--cache-config=local,size=67108864'];
    server = await startServer({ repository: repository.path, isGrpc: true, args });
    clients = [new GrpcClient(server.grpcAddress), new GrpcClient(server.grpcAddress)];
  });
  after(async () => {
    for (const client of clients ?? []) client.close();
    await server?.stop();
    repository?.remove();
  });

  async function ask(prng: Prng, seed: number): Promise<'answered' | 'ended'> {
    const model = prng.pick(MODELS);
    // Some of the requests to the cache are equal.
    const content = contentOf(model === 'cached' ? seed % 5 : seed, prng.pick(WORD_COUNTS));
    const isCancelled = prng.boolean(0.15);
    const isHasty = !isCancelled && prng.boolean(0.1);
    const client = prng.pick(clients);
    const request = requestOf(model, content);
    const { answer, cancel } = client.start(
      'ModelInfer',
      request,
      isHasty ? { timeoutMs: prng.integer(1, 30) } : {},
    );
    if (isCancelled) setTimeout(cancel, prng.integer(0, 30));
    const { code, details, bytes } = await answer;
    if (code !== 0) {
      const expected = isCancelled ? CANCELLED : isHasty ? DEADLINE_EXCEEDED : 0;
      assert.equal(code, expected, `${model}: ${details}`);
      return 'ended';
    }
    assert.ok(
      outputOf(bytes!).equals(content),
      `${model} answered ${content.length} bytes that are another's`,
    );
    return 'answered';
  }

  test('come back as they were sent, while others are cancelled or too late', async () => {
    const counts = { answered: 0, ended: 0 };
    const work = async (worker: number): Promise<void> => {
      const prng = createPrng(worker + 1);
      for (let i = 0; i < REQUESTS_EACH; i++) counts[await ask(prng, worker * REQUESTS_EACH + i + 1)]++;
    };
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)));
    assert.equal(counts.answered + counts.ended, WORKERS * REQUESTS_EACH);
    assert.ok(counts.answered > (WORKERS * REQUESTS_EACH) / 2);
    assert.ok(counts.ended > 20);
  });

  test('wait unspoilt for clients that read late, or that give up in the middle', async () => {
    const session = openSession(server.grpcAddress);
    const waiting = Array.from({ length: SLOW_READERS }, (_, i) => {
      const content = contentOf(10_000 + i, 300_000);
      const stream = openRaw(session, { method: 'ModelInfer' });
      stream.end(framed(requestOf('plain', content)));
      return { content, stream };
    });
    await sleep(100);
    const prng = createPrng(99);
    const workers = Array.from({ length: WORKERS }, async (_, worker) => {
      for (let i = 0; i < 8; i++) {
        const content = contentOf(20_000 + worker * 8 + i, 150_000);
        const { code, bytes } = await prng.pick(clients).call('ModelInfer', requestOf('plain', content));
        assert.equal(code, 0);
        assert.ok(outputOf(bytes!).equals(content));
      }
    });
    await Promise.all(workers);
    for (const { stream } of waiting.splice(0, 2)) drop(stream);
    for (const { content, stream } of waiting) {
      const { grpcStatus, body } = await rawAnswer(stream);
      assert.equal(grpcStatus, 0);
      assert.ok(outputOf(body.subarray(5)).equals(content));
    }
    session.close();
  });

  test('over HTTP are none of that memory', async () => {
    const values = Array.from({ length: 30_000 }, (_, i) => i);
    const body = JSON.stringify({
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, values.length], data: values }],
    });
    const asked = Array.from({ length: 12 }, async (_, i) => {
      const content = contentOf(30_000 + i, 150_000);
      const path = '/v2/models/plain/infer';
      const [answer, grpc] = await Promise.all([
        call(server, { path, body }),
        clients[0]!.call('ModelInfer', requestOf('plain', content)),
      ]);
      const document = JSON.parse(answer.text) as { outputs: { data: number[] }[] };
      assert.deepEqual(document.outputs[0]!.data, values);
      assert.ok(outputOf(grpc.bytes!).equals(content));
    });
    await Promise.all(asked);
  });
});
