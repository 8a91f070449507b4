import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { ModelConfig } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import {
  bytesTensor,
  executedOutputsOf,
  floatsOf,
  makeBatch,
  makeInput,
  makeOutput,
  noSender,
  type PlainOutput,
  runBatch,
  startModel,
} from './test-fixture.ts';

const FOUR: Partial<ModelConfig> = {
  max_batch_size: 8,
  input: [makeInput('INPUT0', 'TYPE_FP32', 4), makeInput('INPUT1', 'TYPE_FP32', 4)],
  output: [makeOutput('OUTPUT0', 'TYPE_FP32', 4), makeOutput('OUTPUT1', 'TYPE_FP32', 4)],
};

function outputsOf(result: PlainOutput[] | string | undefined): PlainOutput[] {
  if (result === undefined || typeof result === 'string') throw new Error(result ?? 'no result');
  return result;
}

function rows(count: number, value: number): { shape: number[]; data: Float32Array } {
  return { shape: [count, 4], data: new Float32Array(count * 4).fill(value) };
}

test('each request of a batch gets its own rows of the outputs', async () => {
  const { instance } = await startModel('ADD_SUB_FP32', FOUR);
  const batch = makeBatch([
    [rows(1, 5), rows(1, 1)],
    [rows(2, 7), rows(2, 2)],
  ]);
  for (let run = 0; run < 4; run++) {
    const [first, second] = (await runBatch(instance, batch)).map(outputsOf);
    assert.deepEqual(
      first!.map((output) => [output.index, output.shape]),
      [
        [0, [1, 4]],
        [1, [1, 4]],
      ],
    );
    assert.deepEqual(
      first!.map((output) => floatsOf(output.data)),
      [Array(4).fill(6), Array(4).fill(4)],
    );
    assert.deepEqual(
      second!.map((output) => output.shape),
      [
        [2, 4],
        [2, 4],
      ],
    );
    assert.deepEqual(
      second!.map((output) => floatsOf(output.data)),
      [Array(8).fill(9), Array(8).fill(5)],
    );
  }
  instance.close();
});

test('batches of changing size reuse the memory of outputs without mixing them up', async () => {
  const { instance } = await startModel('ADD_SUB_FP32', FOUR);
  const held = [];
  for (const count of [1, 8, 3, 8, 1]) {
    const reply = await instance.execute(makeBatch([[rows(count, count), rows(count, 0)]]), noSender);
    held.push({ count, reply });
  }
  for (const { count, reply } of held) {
    const [output] = executedOutputsOf(reply.results[0]);
    assert.deepEqual(floatsOf(output!.data), Array(count * 4).fill(count));
    reply.release?.();
  }
  instance.close();
});

test('only requested outputs are given, to each request its own', async () => {
  const { instance } = await startModel('ADD_SUB_FP32', FOUR);
  const requests = [
    [rows(1, 5), rows(1, 1)],
    [rows(1, 5), rows(1, 1)],
  ];
  const results = await runBatch(instance, makeBatch(requests, { requestedOutputs: [[1], [0]] }));
  assert.deepEqual(
    results.map((result) => outputsOf(result).map((output) => output.index)),
    [[1], [0]],
  );
  instance.close();
});

test('raw types pass unchanged, sizes of zero included', async () => {
  const fp16 = await startModel('IDENTITY_FP16');
  const data = Buffer.from([0x00, 0x3c, 0x00, 0xc0]);
  const half = outputsOf((await runBatch(fp16.instance, makeBatch([[{ shape: [1, 2], data }]])))[0]);
  assert.deepEqual(half, [{ index: 0, shape: [1, 2], data }]);
  const none = makeBatch([[{ shape: [1, 0], data: Buffer.alloc(0) }]]);
  assert.deepEqual(outputsOf((await runBatch(fp16.instance, none))[0]), [
    { index: 0, shape: [1, 0], data: Buffer.alloc(0) },
  ]);
  fp16.instance.close();

  const int64 = await startModel('IDENTITY_INT64');
  const big = Buffer.from(new BigInt64Array([-1n, 2n ** 62n]).buffer);
  const wide = outputsOf((await runBatch(int64.instance, makeBatch([[{ shape: [2, 1], data: big }]])))[0]);
  assert.deepEqual(wide, [{ index: 0, shape: [2, 1], data: big }]);
  int64.instance.close();
});

test('variable dimensions keep their shape', async () => {
  const { instance } = await startModel('VARDIMS');
  const data = new Float32Array([1, 2, 3, 4, 5, 6]);
  const [output] = outputsOf((await runBatch(instance, makeBatch([[{ shape: [1, 2, 3], data }]])))[0]);
  assert.deepEqual(output!.shape, [1, 2, 3]);
  assert.deepEqual(floatsOf(output!.data), [...data]);
  instance.close();
});

test('a small payload that is misaligned is still read right', async () => {
  const { instance } = await startModel('IDENTITY_INT64');
  const aligned = makeBatch([[{ shape: [1, 1], data: Buffer.from(new BigInt64Array([77n]).buffer) }]]);
  const shifted = Buffer.alloc(aligned.payload.length + 3);
  aligned.payload.copy(shifted, 3);
  const results = await runBatch(instance, { ...aligned, payload: shifted.subarray(3) });
  assert.equal(outputsOf(results[0])[0]!.data.readBigInt64LE(), 77n);
  instance.close();
});

test('strings go through; a NUL ends one, as in Triton', async () => {
  const { instance } = await startModel('IDENTITY_BYTES');
  const batch = makeBatch([
    [{ shape: [1, 2], data: bytesTensor('é', Buffer.from([0xff, 0])) }],
    [{ shape: [2, 2], data: bytesTensor('', 'abc', '\0x', 'z'.repeat(300)) }],
  ]);
  const [first, second] = (await runBatch(instance, batch)).map(outputsOf);
  assert.deepEqual(first, [{ index: 0, shape: [1, 2], data: bytesTensor('é', Buffer.from([0xff])) }]);
  assert.deepEqual(second, [{ index: 0, shape: [2, 2], data: bytesTensor('', 'abc', '', 'z'.repeat(300)) }]);
  const none = makeBatch([[{ shape: [1, 0], data: Buffer.alloc(0) }]]);
  assert.deepEqual(outputsOf((await runBatch(instance, none))[0])[0]!.shape, [1, 0]);
  instance.close();
});

test('a request with broken strings fails alone', async () => {
  const { instance } = await startModel('IDENTITY_BYTES');
  const broken = Buffer.from([10, 0, 0, 0, 97, 98, 99]);
  const message =
    "Invalid argument: incomplete string data for inference input 'INPUT0', expecting string of length 10 but " +
    'only 3 bytes available';
  const sound = { shape: [1, 1], data: bytesTensor('ok') };
  const results = await runBatch(instance, makeBatch([[sound], [{ shape: [1, 1], data: broken }], [sound]]));
  assert.equal(results[1], message);
  assert.deepEqual(outputsOf(results[0])[0]!.data, bytesTensor('ok'));
  assert.deepEqual(outputsOf(results[2])[0]!.data, bytesTensor('ok'));
  const alone = await runBatch(instance, makeBatch([[{ shape: [1, 1], data: broken }]]));
  assert.deepEqual(alone, [message]);
  instance.close();
});

test('a failure of the run is each request its error, and the next batch runs', async () => {
  const { instance } = await startModel('RESHAPE', {
    input: [makeInput('X', 'TYPE_FP32', -1), makeInput('SHAPE', 'TYPE_INT64', -1)],
    output: [makeOutput('Y', 'TYPE_FP32', -1, -1)],
  });
  const shape = (value: bigint) => Buffer.from(new BigInt64Array([value, 1n]).buffer);
  const run = (first: bigint) =>
    runBatch(
      instance,
      makeBatch([
        [
          { shape: [3], data: new Float32Array(3) },
          { shape: [2], data: shape(first) },
        ],
      ]),
    );
  assert.match(String((await run(2n))[0]), /^Internal: onnx runtime error \d+: .*Reshape/);
  assert.deepEqual(outputsOf((await run(3n))[0])[0]!.shape, [3, 1]);
  instance.close();
});

test('an output with too few rows fails the requests behind them', async () => {
  const { instance } = await startModel('FIRST_ROW', {
    max_batch_size: 4,
    input: [makeInput('X', 'TYPE_FP32', 2)],
    output: [makeOutput('Y', 'TYPE_FP32', 2)],
  });
  const row = (value: number) => ({ shape: [1, 2], data: new Float32Array([value, value]) });
  for (let run = 0; run < 2; run++) {
    const results = await runBatch(instance, makeBatch([[row(4)], [row(5)]]));
    assert.deepEqual(floatsOf(outputsOf(results[0])[0]!.data), [4, 4]);
    assert.equal(
      results[1],
      "Unsupported: failed to split the output tensor 'Y' in responses: expected batch size of at least 2 in " +
        'model output, got 1',
    );
  }
  instance.close();
});

test('ragged inputs are laid end to end, batch_input is made, batch_output scattered', async () => {
  const { instance } = await startModel('RAGGED', {
    max_batch_size: 4,
    input: [{ ...makeInput('X', 'TYPE_FP32', -1), allow_ragged_batch: true }],
    output: [makeOutput('Y', 'TYPE_FP32', -1)],
    batch_input: [
      {
        kind: 'BATCH_ACCUMULATED_ELEMENT_COUNT',
        target_name: ['ENDS'],
        data_type: 'TYPE_INT32',
        source_input: ['X'],
      },
    ],
    batch_output: [{ target_name: ['Y'], kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE', source_input: ['X'] }],
  });
  const batch = makeBatch([
    [{ shape: [1, 3], data: new Float32Array([1, 2, 3]) }],
    [{ shape: [1, 1], data: new Float32Array([10]) }],
  ]);
  const [first, second] = (await runBatch(instance, batch)).map(outputsOf);
  assert.deepEqual(
    [first![0]!.shape, floatsOf(first![0]!.data)],
    [
      [1, 3],
      [2, 4, 6],
    ],
  );
  assert.deepEqual([second![0]!.shape, floatsOf(second![0]!.data)], [[1, 1], [20]]);
  instance.close();
});

const LOOP: Partial<ModelConfig> = {
  input: [makeInput('COUNT', 'TYPE_INT64', 1), makeInput('X', 'TYPE_FP32', 2)],
  output: [makeOutput('Y', 'TYPE_FP32', 2)],
};

function loop(count: bigint, id: number) {
  return makeBatch(
    [
      [
        { shape: [1], data: Buffer.from(new BigInt64Array([count]).buffer) },
        { shape: [2], data: new Float32Array([1, 2]) },
      ],
    ],
    { id },
  );
}

test('a long run leaves the event loop free, and a cancel ends it', async () => {
  const { instance } = await startModel('LOOP', LOOP);
  const long = Promise.resolve(instance.execute(loop(2_000_000_000n, 7), noSender));
  await sleep(20);
  instance.cancel(8);
  await sleep(20);
  instance.cancel(7);
  const { results } = await long;
  const [result] = results;
  assert.ok(result instanceof StatusError);
  assert.equal(result.code, 'CANCELLED');
  const after = outputsOf((await runBatch(instance, loop(1n, 9)))[0]);
  assert.ok(Math.abs(floatsOf(after[0]!.data)[0]! - Math.tanh(1)) < 1e-6);
  instance.close();
});

test('closing during a run ends the run first', async () => {
  const { instance } = await startModel('LOOP', LOOP);
  const long = Promise.resolve(instance.execute(loop(2_000_000_000n, 1), noSender));
  await sleep(10);
  instance.close();
  const { results } = await long;
  assert.ok(results[0] instanceof StatusError);
});

test('twenty thousand runs leave no memory behind', async () => {
  const fixed = await startModel('ADD_SUB_FP32', FOUR);
  const strings = await startModel('IDENTITY_BYTES');
  const variable = await startModel('VARDIMS');
  const text = bytesTensor(...Array<string>(16).fill('a'.repeat(256)));
  const batches = [
    // Two sizes in turn, so that the value on the reused output memory is made anew each time.
    { instance: fixed.instance, batch: makeBatch([[rows(4, 1), rows(4, 2)]]) },
    { instance: fixed.instance, batch: makeBatch([[rows(8, 1), rows(8, 2)]]) },
    { instance: strings.instance, batch: makeBatch([[{ shape: [1, 16], data: text }]]) },
    {
      instance: variable.instance,
      batch: makeBatch([[{ shape: [1, 32, 32], data: new Float32Array(1024) }]]),
    },
  ];
  const runMany = async (count: number): Promise<number> => {
    for (let i = 0; i < count; i++) {
      const { instance, batch } = batches[i % batches.length]!;
      const reply = instance.execute(batch, noSender);
      (reply instanceof Promise ? await reply : reply).release?.();
      // Views on native memory are let go when the event loop turns, as it does between batches of a host.
      if (i % 100 === 0) await setImmediate();
    }
    return process.memoryUsage().rss;
  };
  const before = await runMany(8_000);
  const after = await runMany(20_000);
  // A value without data that leaks once per run of its model is 5 MB here; strings and outputs are 20 MB each.
  assert.ok(after - before < 3 * 1024 * 1024, `grew by ${after - before} bytes`);
  for (const { instance } of [fixed, strings, variable]) instance.close();
});
