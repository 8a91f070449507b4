// The replay's protobuf reader and writer, where its library is easily held wrong.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeMessage, encodeMessage, messageType } from './proto-json.ts';

function roundTrip(name: string, message: Record<string, unknown>) {
  const type = messageType(name);
  assert.ok(type, `${name} is no message`);
  return decodeMessage(type, encodeMessage(type, message));
}

describe('proto JSON of the cases', () => {
  test('keeps every digit of 64-bit integers, in values and in map keys', () => {
    const config = { dynamic_batching: { priority_queue_policy: { '18446744073709551615': {}, '3': {} } } };
    assert.deepEqual(roundTrip('ModelConfig', config), config);
    const request = { parameters: { a: { int64_param: '-9007199254740993' } } };
    assert.deepEqual(roundTrip('ModelInferRequest', request), {
      parameters: { a: { int64_param: -9007199254740993n } },
    });
  });

  test('leaves out a default that was sent, but not one of a oneof', () => {
    const type = messageType('ServerLiveResponse');
    assert.ok(type);
    assert.deepEqual(decodeMessage(type, Buffer.from([0x08, 0x00])), {});
    const request = { parameters: { a: { bool_param: false } } };
    assert.deepEqual(roundTrip('ModelInferRequest', request), request);
  });

  test('tells whole floats from integers and writes enums by name', () => {
    const input = { name: 'X', shape: [2], contents: { fp32_contents: [1, 0.5] } };
    assert.deepEqual(roundTrip('ModelInferRequest', { inputs: [input] }), {
      inputs: [{ ...input, shape: [2n] }],
    });
    assert.deepEqual(roundTrip('ModelConfig', { input: [{ data_type: 'TYPE_INT8' }] }), {
      input: [{ data_type: 'TYPE_INT8' }],
    });
  });

  test('makes raw contents from a fill', () => {
    assert.deepEqual(roundTrip('ModelInferRequest', { raw_fill: [{ dtype: '<i4', count: 2 }] }), {
      raw_input_contents: ['AAAAAAEAAAA='],
    });
  });

  test('knows no message of methods that do not exist', () => {
    assert.equal(messageType('NoSuchMethodRequest'), undefined);
  });
});
