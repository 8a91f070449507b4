// Sequence models with implicit state: what an instance keeps between executions, alone and in batches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BackendInstance, StateSlot } from '../../backend/sdk.ts';
import type { ModelConfig, SequenceState } from '../../domain/model-config.ts';
import {
  bytesTensor,
  floatsOf,
  makeBatch,
  makeInput,
  makeOutput,
  type PlainOutput,
  runBatch,
  startModel,
  type TestInput,
} from './test-fixture.ts';

type Sequencing = NonNullable<ModelConfig['sequence_batching']>;

function makeState(dataType: string, ...dims: number[]): SequenceState {
  return {
    input_name: 'STATE_IN',
    output_name: 'STATE_OUT',
    data_type: dataType,
    dims,
    initial_state: [],
    use_same_buffer_for_input_output: false,
    use_growable_memory: false,
  };
}

function sequencing(fields: Partial<Sequencing>): Sequencing {
  return {
    max_sequence_idle_microseconds: 1,
    control_input: [],
    state: [],
    iterative_sequence: false,
    ...fields,
  };
}

function control(name: string, kind: string) {
  const flags = { int32_false_true: [0, 1], fp32_false_true: [], bool_false_true: [] };
  return { name, control: [{ kind, ...flags, data_type: 'TYPE_INVALID' }] };
}

const ACCUMULATE = sequencing({
  control_input: [control('START', 'CONTROL_SEQUENCE_START'), control('END', 'CONTROL_SEQUENCE_END')],
  state: [makeState('TYPE_INT32', 1)],
});

function startAccumulate(fields: Partial<ModelConfig> = {}) {
  return startModel('SEQ_ACCUMULATE', {
    max_batch_size: 4,
    input: [makeInput('INPUT', 'TYPE_INT32', 1)],
    output: [makeOutput('OUTPUT', 'TYPE_INT32', 1)],
    sequence_batching: ACCUMULATE,
    ...fields,
  });
}

const at = (slot: number, step: 'start' | 'next' | 'end' | 'both' = 'next'): StateSlot => ({
  slot,
  isStart: step === 'start' || step === 'both',
  isEnd: step === 'end' || step === 'both',
});

const int32 = (value: number): TestInput => ({ shape: [1, 1], data: new Int32Array([value]) });
const fp32 = (value: number): TestInput => ({ shape: [1, 1], data: new Float32Array([value]) });

/** The sum that the model answers with; START is left 0, so that only the kept state can reset it. */
async function accumulate(
  instance: BackendInstance,
  ...steps: (readonly [number, StateSlot | undefined])[]
): Promise<(number | string)[]> {
  const inputs = steps.map(([value]) => [int32(value), int32(0), int32(0)]);
  const results = await runBatch(instance, makeBatch(inputs, { states: steps.map(([, state]) => state) }));
  return results.map((result) => {
    if (typeof result === 'string') return result;
    assert.deepEqual(
      result.map(({ index }) => index),
      [0],
    );
    return result[0]!.data.readInt32LE();
  });
}

test('rows of different slots go on from their own states, in any order and beside null requests', async () => {
  const { instance } = await startAccumulate();
  assert.deepEqual(await accumulate(instance, [1, at(0, 'start')], [10, at(7, 'start')]), [1, 10]);
  assert.deepEqual(await accumulate(instance, [5, at(7)]), [15]);
  assert.deepEqual(
    await accumulate(instance, [9, undefined], [100, at(7)], [2, at(0)], [9, undefined]),
    [9, 115, 3, 9],
  );
  assert.deepEqual(await accumulate(instance, [9, undefined]), [9]);
  assert.deepEqual(await accumulate(instance, [1, at(0)], [1, at(7, 'start')]), [4, 1]);
  instance.close();
});

test('a state that comes with the batch is taken, and its successor dropped', async () => {
  const { instance } = await startAccumulate();
  const batch = makeBatch([[int32(5), int32(0), int32(0), int32(37)]]);
  const [outputs] = (await runBatch(instance, batch)) as PlainOutput[][];
  assert.deepEqual(
    outputs!.map(({ index, data }) => [index, data.readInt32LE()]),
    [[0, 42]],
  );
  assert.deepEqual(await accumulate(instance, [9, undefined]), [9]);
  instance.close();
});

test('the end frees the slot; a request of a sequence whose state is gone fails alone', async () => {
  const { instance } = await startAccumulate();
  const lost =
    "Unavailable: the state of the sequence was lost when an instance of model 'm' was restarted; start the sequence again";
  assert.deepEqual(await accumulate(instance, [1, at(0, 'start')], [2, at(1, 'both')]), [1, 2]);
  assert.deepEqual(await accumulate(instance, [4, at(0)], [4, at(1)], [4, at(2, 'start')]), [5, lost, 4]);
  assert.deepEqual(await accumulate(instance, [4, at(3)]), [lost]);
  assert.deepEqual(await accumulate(instance, [1, at(0, 'end')], [1, at(2)]), [6, 5]);
  assert.deepEqual(await accumulate(instance, [1, at(0)]), [lost]);
  instance.close();
});

test('the same slot twice in one batch: the second goes on from the first', async () => {
  const { instance } = await startAccumulate();
  const steps = [[1, at(0, 'start')] as const, [2, at(0)] as const, [3, at(1, 'start')] as const];
  assert.deepEqual(await accumulate(instance, ...steps), [1, 3, 3]);
  instance.close();
});

test('a state that the config shows as an output is answered when it is requested', async () => {
  const output = [makeOutput('OUTPUT', 'TYPE_INT32', 1), makeOutput('STATE_OUT', 'TYPE_INT32', 1)];
  const { instance } = await startAccumulate({ output });
  const run = async (value: number, step: 'start' | 'next', requestedOutputs: number[][]) => {
    const batch = makeBatch([[int32(value), int32(0), int32(0)]], {
      states: [at(0, step)],
      requestedOutputs,
    });
    const [outputs] = await runBatch(instance, batch);
    return (outputs as PlainOutput[]).map(({ index, data }) => [index, data.readInt32LE()]);
  };
  assert.deepEqual(await run(3, 'start', [[0]]), [[0, 3]]);
  assert.deepEqual(await run(4, 'next', [[1]]), [[1, 7]]);
  assert.deepEqual(await run(5, 'next', []), [
    [0, 12],
    [1, 12],
  ]);
  instance.close();
});

test('a failed execution leaves the state as it was', async () => {
  const { instance } = await startModel('STATE_RESHAPE', {
    input: [makeInput('INPUT', 'TYPE_FP32', 2), makeInput('SHAPE', 'TYPE_INT64', -1)],
    output: [makeOutput('OUTPUT', 'TYPE_FP32', -1, -1)],
    sequence_batching: sequencing({ state: [makeState('TYPE_FP32', 2)] }),
  });
  const run = async (value: number, columns: bigint, state: StateSlot) => {
    const shape = { shape: [2], data: Buffer.from(new BigInt64Array([1n, columns]).buffer) };
    const input = { shape: [2], data: new Float32Array([value, -value]) };
    const [result] = await runBatch(instance, makeBatch([[input, shape]], { states: [state] }));
    return typeof result === 'string' ? 'failed' : floatsOf(result![0]!.data);
  };
  assert.equal(await run(1, 3n, at(0, 'start')), 'failed');
  assert.deepEqual(await run(1, 2n, at(0)), [1, -1]);
  assert.equal(await run(5, 3n, at(0)), 'failed');
  assert.deepEqual(await run(2, 2n, at(0)), [3, -3]);
  instance.close();
});

test('states that grow: rows of one shape run together, others apart', async () => {
  const { instance } = await startModel('STATE_GROW', {
    max_batch_size: 8,
    input: [makeInput('INPUT', 'TYPE_FP32', 1)],
    output: [makeOutput('OUTPUT', 'TYPE_FP32', 1), makeOutput('STATE_OUT', 'TYPE_FP32', -1)],
    sequence_batching: sequencing({ state: [makeState('TYPE_FP32', -1)] }),
  });
  const run = async (...steps: [number, StateSlot | undefined][]) => {
    const inputs = steps.map(([value]) => [fp32(value)]);
    const results = await runBatch(instance, makeBatch(inputs, { states: steps.map(([, s]) => s) }));
    return results.map((result) => (typeof result === 'string' ? result : floatsOf(result[1]!.data)));
  };
  assert.deepEqual(await run([1, at(0, 'start')]), [[0, 1]]);
  assert.deepEqual(await run([2, at(0)], [7, at(1, 'start')], [8, at(2, 'start')]), [
    [0, 1, 2],
    [0, 7],
    [0, 8],
  ]);
  assert.deepEqual(await run([5, undefined], [3, at(0)], [6, undefined], [9, at(2)], [9, at(1)]), [
    [0, 0, 0, 5],
    [0, 1, 2, 3],
    [0, 0, 0, 6],
    [0, 8, 9],
    [0, 7, 9],
  ]);
  instance.close();
});

test('a state of strings', async () => {
  const { instance } = await startModel('STATE_BYTES', {
    max_batch_size: 4,
    input: [makeInput('INPUT', 'TYPE_STRING', 1)],
    output: [makeOutput('OUTPUT', 'TYPE_STRING', 1)],
    sequence_batching: sequencing({ state: [makeState('TYPE_STRING', 1)] }),
  });
  const run = async (...steps: [string, StateSlot | undefined][]) => {
    const inputs = steps.map(([text]) => [{ shape: [1, 1], data: bytesTensor(text) }]);
    const results = await runBatch(instance, makeBatch(inputs, { states: steps.map(([, s]) => s) }));
    return results.map((result) => (result as PlainOutput[])[0]!.data.subarray(4).toString());
  };
  assert.deepEqual(await run(['one', at(0, 'start')], ['null', undefined], ['three', at(1, 'start')]), [
    '',
    '',
    '',
  ]);
  assert.deepEqual(await run(['four', at(1)], ['five', at(0)]), ['three', 'one']);
  assert.deepEqual(await run(['', at(0)]), ['five']);
  instance.close();
});

test('completion leaves controls and states out', async () => {
  const { config, instance } = await startModel('SEQ_ACCUMULATE', { sequence_batching: ACCUMULATE });
  instance.close();
  assert.deepEqual(
    [...config.input, ...config.output].map(({ name }) => name),
    ['INPUT', 'OUTPUT'],
  );
});
