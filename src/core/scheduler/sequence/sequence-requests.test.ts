// What an instance gets for a request of a sequence, and for a place that is only filled up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SEQUENCE_END, SEQUENCE_START } from '../../../domain/request.ts';
import type { SentInput, SentRequest } from '../../../instance/execute-frame.ts';
import { Deque } from '../../../lib/deque.ts';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import type { Entry } from '../entry.ts';
import { makeEntry, makeRequest } from '../test-entry.ts';
import type { SequenceId } from './sequence.ts';
import { createSequenceRequests } from './sequence-requests.ts';

const CONTROLS = `
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ -1, 7 ] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ true, false ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0.5, 2 ] } }`;
const STATE = 'state { input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: 1 }';
const INPUTS =
  'input { name: "X" data_type: TYPE_FP32 dims: 2 } input { name: "T" data_type: TYPE_STRING dims: 3 }';

function configOf(sequence: string, maxBatchSize = 4) {
  return parseModelConfig(`max_batch_size: ${maxBatchSize} ${INPUTS} sequence_batching { ${sequence} }`);
}

function entryOf(id: SequenceId, flags: number, sent?: SentRequest): Entry {
  const sequence = {
    id,
    waiting: new Deque<Entry>(),
    slot: undefined,
    idleSinceMs: 0,
    deadlineMs: 0,
    isClosed: false,
  };
  return makeEntry({
    sequence: { sequence, flags, slot: undefined },
    ...(sent === undefined ? {} : { sent }),
  });
}

/** index → bytes in hex */
function bytesOf(inputs: readonly SentInput[]): Record<number, string> {
  return Object.fromEntries(inputs.map(({ index, data }) => [index, Buffer.concat(data).toString('hex')]));
}

test('controls follow the inputs in the order of the config, with the values of the config', () => {
  const requests = createSequenceRequests(configOf(CONTROLS));
  const start = requests.of(entryOf(258n, SEQUENCE_START), 0);
  assert.deepEqual(bytesOf(start.inputs), { 2: '07000000', 3: '0201000000000000', 4: '01', 5: '00000040' });
  assert.deepEqual(new Set(start.inputs.map(({ shape }) => shape.join())), new Set(['1,1']));
  const both = requests.of(entryOf(1n, SEQUENCE_START | SEQUENCE_END), 0);
  assert.deepEqual(bytesOf(both.inputs), { 2: '07000000', 3: '0100000000000000', 4: '00', 5: '00000040' });
  const middle = requests.of(entryOf(2n ** 64n - 1n, 0), 0);
  assert.deepEqual(bytesOf(middle.inputs), { 2: 'ffffffff', 3: 'ffffffffffffffff', 4: '01', 5: '00000040' });
});

test('without batching a control has one dimension', () => {
  const { inputs } = createSequenceRequests(configOf(CONTROLS, 0)).of(entryOf(1n, 0), 0);
  assert.deepEqual(inputs[0]?.shape, [1]);
});

test('the id is cut to 32 bits, or written as a text', () => {
  const corrid = (type: string) =>
    `control_input { name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: ${type} } }`;
  const bytes = (type: string, id: SequenceId) =>
    bytesOf(createSequenceRequests(configOf(corrid(type))).of(entryOf(id, 0), 0).inputs)[2];
  assert.equal(bytes('TYPE_UINT32', 0x1_0000_0002n), '02000000');
  assert.equal(bytes('TYPE_INT32', 2n ** 64n - 1n), 'ffffffff');
  assert.equal(bytes('TYPE_INT64', 5n), '0500000000000000');
  assert.equal(bytes('TYPE_STRING', 'ä'), `02000000${Buffer.from('ä').toString('hex')}`);
});

test('a model with state is told its place, others are not', () => {
  const ends = entryOf(1n, SEQUENCE_END);
  assert.deepEqual(createSequenceRequests(configOf(STATE)).of(ends, 3).state, {
    slot: 3,
    isStart: false,
    isEnd: true,
  });
  assert.equal(createSequenceRequests(configOf(CONTROLS)).of(ends, 3).state, undefined);
});

test('a null request has the shapes of another and zeros for data, is not ready and has no state', () => {
  const requests = createSequenceRequests(configOf(`${CONTROLS} ${STATE}`));
  const text = Buffer.from('0300000061626300000000010000007a', 'hex');
  const large = Buffer.alloc(3 * 1024 * 1024, 1);
  const like: SentRequest = {
    inputs: [
      { index: 0, shape: [1, large.length / 4], data: [large], byteLength: large.length },
      { index: 1, shape: [1, 3], data: [text], byteLength: text.length },
    ],
    requestedOutputs: [1],
  };
  const filling = requests.filling(like);
  const [x, t, ...controls] = filling.inputs;
  assert.equal(x?.byteLength, large.length);
  assert.ok(Buffer.concat(x!.data).equals(Buffer.alloc(large.length)));
  assert.ok(Buffer.concat(t!.data).equals(Buffer.alloc(12)), 'three texts without characters');
  assert.equal(t?.byteLength, 12);
  assert.deepEqual(bytesOf(controls), { 2: 'ffffffff', 3: '0000000000000000', 4: '01', 5: '0000003f' });
  assert.deepEqual([filling.state, filling.requestedOutputs], [undefined, [1]]);
  assert.equal(large[0], 1, 'the data of the client is as it was');
});

test('hosts that want to know more hear the id and the flags that the scheduler made', () => {
  const sent = { inputs: [], requestedOutputs: [], info: Buffer.from('{}') };
  const entry = { ...entryOf(9n, SEQUENCE_START, sent), request: makeRequest({ id: 'r' }) };
  const told = (sequence: string) => String(createSequenceRequests(configOf(sequence)).of(entry, 0).info);
  assert.equal(told(''), '{}');
  assert.match(told('iterative_sequence: true'), /"id":"r".*"correlationId":9.*"flags":1/);
  assert.match(String(createSequenceRequests(configOf('')).filling(sent).info), /"correlationId":0/);
});
