import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { ModelConfig, SequenceState } from '../domain/model-config.ts';
import { readInitialStates } from './initial-states.ts';
import { SequenceStates } from './sequence-states.ts';

const directory = mkdtempSync(join(tmpdir(), 'nereid-states-'));
after(() => rmSync(directory, { recursive: true }));
mkdirSync(join(directory, 'initial_state'));
writeFileSync(join(directory, 'initial_state', 'two'), Buffer.from(Float32Array.of(1, 2, 3).buffer));

function makeState(fields: Partial<SequenceState>): SequenceState {
  return {
    input_name: 'S',
    output_name: 'T',
    data_type: 'TYPE_FP32',
    dims: [2],
    initial_state: [],
    use_same_buffer_for_input_output: false,
    use_growable_memory: false,
    ...fields,
  };
}

function initialOf(maxBatchSize: number, ...states: SequenceState[]) {
  const config = { max_batch_size: maxBatchSize, sequence_batching: { state: states } };
  return readInitialStates(config as ModelConfig, directory);
}

test('without an initial state a sequence starts with zeros, and dimensions that vary are 1', () => {
  const [fixed, variable, text] = initialOf(
    4,
    makeState({}),
    makeState({ dims: [3, -1] }),
    makeState({ data_type: 'TYPE_STRING' }),
  );
  assert.deepEqual(fixed, { shape: [1, 2], data: Buffer.alloc(8) });
  assert.deepEqual(variable, { shape: [1, 3, 1], data: Buffer.alloc(12) });
  assert.deepEqual(text, { shape: [1, 2], data: Buffer.alloc(8) });
});

test('an initial state comes from its file, which may be longer but not shorter than the tensor', () => {
  const initial = { data_type: 'TYPE_FP32', name: 'n', data_file: 'two' };
  const [state] = initialOf(0, makeState({ initial_state: [{ ...initial, dims: [2] }] }));
  assert.deepEqual(state, { shape: [2], data: Buffer.from(Float32Array.of(1, 2).buffer) });
  assert.throws(
    () => initialOf(0, makeState({ dims: [-1], initial_state: [{ ...initial, dims: [4] }] })),
    /^StatusError: initial_state setting expects 16 bytes, but the data provided from twoonly has 12 bytes\.$/,
  );
  const missing = { ...initial, dims: [2], data_file: 'none' };
  assert.throws(
    () => initialOf(0, makeState({ initial_state: [missing] })),
    /failed to open text file for read .*initial_state\/none: No such file or directory$/,
  );
});

const START = { slot: 3, isStart: true, isEnd: false };
const NEXT = { slot: 3, isStart: false, isEnd: false };

test('a slot starts with a copy of the initial state, goes on from the last one and is freed at the end', () => {
  const initial = { shape: [2], data: Buffer.of(1, 2) };
  const states = new SequenceStates('m', [initial]);
  assert.equal(states.begin(START), undefined);
  const output = Buffer.of(5, 6);
  states.advance(3, 0, { shape: [2], data: output });
  output.fill(0);
  assert.equal(states.begin(NEXT), undefined);
  assert.deepEqual(states.of(3, 0), { shape: [2], data: Buffer.of(5, 6) });
  states.advance(3, 0, { shape: [3], data: Buffer.of(7, 8, 9) });
  assert.deepEqual(states.of(3, 0), { shape: [3], data: Buffer.of(7, 8, 9) });
  assert.equal(states.begin(START), undefined);
  assert.deepEqual(states.of(3, 0), { shape: [2], data: Buffer.of(1, 2) });
  assert.equal(states.slotCount, 1);
  states.end(3);
  assert.equal(states.slotCount, 0);
  assert.deepEqual(initial.data, Buffer.of(1, 2));
});

test('a sequence whose state is gone is told so', () => {
  const states = new SequenceStates('m', [{ shape: [1], data: Buffer.of(1) }]);
  assert.equal(
    states.begin(NEXT)?.describe(),
    "Unavailable: the state of the sequence was lost when an instance of model 'm' was restarted; start the sequence again",
  );
});
