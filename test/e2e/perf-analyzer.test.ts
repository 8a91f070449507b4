// The real perf_analyzer against the server: over each protocol, with streams, shared memory, JSON input data and its
// ways to send load. Each run is short: that it works is tested here, how fast it is in bench/.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { call } from '../support/load.ts';
import { findPerfAnalyzer, type PerfRun, runPerfAnalyzer } from '../support/perf-analyzer.ts';
import { addExample, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const REPEAT_CONFIG = `backend: "repeat"
model_transaction_policy { decoupled: true }
input [
  { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
]
output [
  { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
]
`;
const REPEAT_DATA = {
  data: [
    {
      IN: { content: [4, 5, 6], shape: [3] },
      DELAY: { content: [0, 0, 0], shape: [3] },
      WAIT: { content: [0], shape: [1] },
    },
  ],
};
const COUNT_DATA = {
  data: [1, 2].map((factor) => ({
    INPUT0: Array.from({ length: 16 }, (_, i) => i * factor),
    INPUT1: Array.from({ length: 16 }, () => factor),
  })),
  validation_data: [1, 2].map((factor) => ({
    OUTPUT0: Array.from({ length: 16 }, (_, i) => i * factor + factor),
    OUTPUT1: Array.from({ length: 16 }, (_, i) => i * factor - factor),
  })),
};

const REQUESTS = 200;
const COUNTED = ['--request-count', String(REQUESTS)];
/** Windows that agree at once, whatever they measure. */
const WINDOWS = ['-p', '300', '-s', '100000', '-r', '4'];

const perfAnalyzer = await findPerfAnalyzer();
const skip = 'reason' in perfAnalyzer && perfAnalyzer.reason;

describe('perf_analyzer', { skip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addExample(repository, { name: 'add_sub_int32', example: 'add_sub_int32' });
    mkdirSync(repository.at('repeat', '1'), { recursive: true });
    writeFileSync(repository.at('repeat', 'config.pbtxt'), REPEAT_CONFIG);
    writeFileSync(repository.at('repeat.json'), JSON.stringify(REPEAT_DATA));
    writeFileSync(repository.at('counts.json'), JSON.stringify(COUNT_DATA));
    server = await startServer({ repository: repository.path, isGrpc: true });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  async function load(model: string, protocol: 'http' | 'grpc', ...args: string[]): Promise<PerfRun> {
    if ('reason' in perfAnalyzer) throw new Error(perfAnalyzer.reason);
    const url = protocol === 'http' ? server.httpAddress : server.grpcAddress;
    const run = await runPerfAnalyzer(perfAnalyzer, ['-m', model, '-u', url, '-i', protocol, ...args]);
    assert.equal(run.code, 0, run.output);
    assert.ok(run.inferPerS > 0, run.output);
    assert.doesNotMatch(run.output, /error|failed/i);
    if (args.includes('--request-count')) assert.equal(run.requestCount, REQUESTS, run.output);
    return run;
  }

  for (const protocol of ['http', 'grpc'] as const) {
    describe(`over ${protocol}`, () => {
      const runs: Readonly<Record<string, readonly string[]>> = {
        'one request after another': COUNTED,
        'several at once, with batches of four': ['--concurrency-range', '4', '-b', '4', ...WINDOWS],
        'asynchronous calls': ['--async', '--concurrency-range', '8', ...COUNTED],
        'a request rate': ['--request-rate-range', '150', ...WINDOWS],
      };
      for (const [name, args] of Object.entries(runs)) {
        test(name, async () => {
          await load('add_sub_int32', protocol, ...args);
        });
      }

      test('input data from a file, answers compared', async () => {
        await load('add_sub_int32', protocol, '--input-data', repository.at('counts.json'), ...COUNTED);
      });

      test('tensors in shared memory', {
        skip: !existsSync('/dev/shm') && 'this platform has no /dev/shm',
      }, async () => {
        const memory = ['--shared-memory', 'system', '--output-shared-memory-size', '4096'];
        await load('add_sub_int32', protocol, ...memory, '--concurrency-range', '2', ...COUNTED);
        const { text } = await call(server, { path: '/v2/systemsharedmemory/status' });
        assert.equal(text, '[]', 'every region is unregistered at the end');
      });
    });
  }

  test('JSON tensors over http', async () => {
    const formats = ['--input-tensor-format=json', '--output-tensor-format=json'];
    await load('add_sub_int32', 'http', ...formats, ...COUNTED);
  });

  test('streams of a decoupled model', async () => {
    const data = ['--input-data', repository.at('repeat.json')];
    const { output } = await load('repeat', 'grpc', '--streaming', ...data, ...COUNTED);
    const [requests, responses] = [...output.matchAll(/Throughput: ([\d.]+)/g)].map((found) =>
      Number(found[1]),
    );
    assert.ok(Math.abs(responses! / requests! - 3) < 0.01, output);
  });

  test('streams of an ordinary model', async () => {
    await load('add_sub_int32', 'grpc', '--streaming', '--concurrency-range', '4', ...COUNTED);
  });

  test('compressed requests over grpc', async () => {
    await load('add_sub_int32', 'grpc', '--grpc-compression-algorithm', 'gzip', ...COUNTED);
  });
});
