// What text format may look like, and what is said where it is wrong.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createMessage } from '../../domain/message-value.ts';
import { parseModelConfig } from './parse-model-config.ts';
import { PbtxtError } from './pbtxt-error.ts';

function errorOf(text: string): PbtxtError {
  try {
    parseModelConfig(text);
  } catch (error) {
    assert.ok(error instanceof PbtxtError, String(error));
    return error;
  }
  return assert.fail(`no error for ${text}`);
}

test('an empty text is the config of defaults', () => {
  assert.deepEqual(parseModelConfig('  # nothing\n'), createMessage('ModelConfig'));
});

test('an ordinary config', () => {
  const config = parseModelConfig(`
    backend: "onnxruntime"   # a comment
    max_batch_size: 4
    input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }, { name: 'Z', dims: 3; dims: -1 } ]
    output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] reshape: { shape: [ ] } }
    instance_group [ { kind: KIND_CPU count: 1 } ]
    dynamic_batching { }
  `);
  assert.equal(config.backend, 'onnxruntime');
  assert.equal(config.max_batch_size, 4);
  assert.deepEqual(
    config.input.map((input) => [input.name, input.data_type, input.dims]),
    [
      ['X', 'TYPE_FP32', [2]],
      ['Z', 'TYPE_INVALID', [3, -1]],
    ],
  );
  assert.deepEqual(config.output[0]?.reshape, { shape: [] });
  assert.equal(config.input[0]?.reshape, undefined);
  assert.equal(config.instance_group[0]?.kind, 'KIND_CPU');
  assert.deepEqual(config.dynamic_batching, createMessage('ModelDynamicBatching'));
  assert.equal(config.version_policy, undefined);
});

test('maps: one entry, several, in a list, without key or value, with number keys; the last one wins', () => {
  const config = parseModelConfig(`
    parameters { key: "note" value { string_value: "hello" } }
    parameters: [ { key: "a", value: < string_value: "1" > }, { key: "a" value { string_value: "2" } } ]
    parameters { value { } } parameters { key: "b" }
    parameters { key: "__proto__" value { string_value: "own" } }
    metric_tags < key: "team" value: "blue" >
    dynamic_batching { priority_queue_policy { key: 0x3 value: { max_queue_size: 2 } } }
  `);
  assert.deepEqual(Object.entries(config.parameters), [
    ['note', { string_value: 'hello' }],
    ['a', { string_value: '2' }],
    ['', { string_value: '' }],
    ['b', { string_value: '' }],
    ['__proto__', { string_value: 'own' }],
  ]);
  assert.deepEqual(config.metric_tags, { team: 'blue' });
  assert.equal(config.dynamic_batching?.priority_queue_policy['3']?.max_queue_size, 2);
});

test('strings: both quotes, escapes, concatenation, raw UTF-8, several lines', () => {
  const name = (literal: string) => parseModelConfig(`name: ${literal}`).name;
  assert.equal(name(`"a" 'b'\n "c"`), 'abc');
  assert.equal(name(String.raw`"\n\t\r\a\b\f\v\\\?\'\""`), '\n\t\r\u0007\b\f\v\\?\'"');
  assert.equal(name(String.raw`"\x41\101\x9"`), 'AA\t');
  assert.equal(name(String.raw`"\u00e9\U0001F600\ud83d\ude00"`), 'é😀😀');
  assert.equal(name(String.raw`"\303\251\xc3" "\xa9"`), 'éé');
  assert.equal(name('"é漢😀"'), 'é漢😀');
  assert.equal(name('"a\nb"'), 'a\nb');
});

test('numbers, booleans and enums in all their spellings', () => {
  const config = parseModelConfig(`
    max_batch_size: 0x10
    input { dims: [ 010, -1, 9223372036854775807, - 5 ] data_type: 11 optional: 1 is_shape_tensor: t
            allow_ragged_batch: True format: FORMAT_NCHW }
    sequence_batching {
      control_input { control { fp32_false_true: [ 1f, -1.5e1, .5, inf, -INF, nan, 0.1 ]
                                bool_false_true: [ false, f, False, 0, true ] } }
      direct { minimum_slot_utilization: 1. }
    }
  `);
  assert.equal(config.max_batch_size, 16);
  const input = config.input[0]!;
  assert.deepEqual(input.dims, [8, -1, 2 ** 63, -5]);
  assert.equal(input.data_type, 'TYPE_FP32');
  assert.deepEqual([input.optional, input.is_shape_tensor, input.allow_ragged_batch], [true, true, true]);
  const control = config.sequence_batching!.control_input[0]!.control[0]!;
  const expected = [
    1,
    -15,
    0.5,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NaN,
    Math.fround(0.1),
  ];
  assert.deepEqual(control.fp32_false_true, expected);
  assert.deepEqual(control.bool_false_true, [false, false, false, false, true]);
  assert.equal(config.sequence_batching?.direct?.minimum_slot_utilization, 1);
});

test('a choice has presence even at its default', () => {
  const config = parseModelConfig('model_warmup { inputs { key: "X" value { zero_data: false } } }');
  assert.equal(config.model_warmup[0]?.inputs.X?.zero_data, false);
  assert.equal('random_data' in config.model_warmup[0]!.inputs.X!, false);
});

test('an error shows line, column, reason, the line itself and a caret', () => {
  const error = errorOf('backend: "onnxruntime"\n\tshoe_size: 43\n');
  assert.equal(error.code, 'INVALID_ARG');
  assert.deepEqual([error.line, error.column], [2, 2]);
  assert.equal(
    error.message,
    '2:2: Message type "inference.ModelConfig" has no field named "shoe_size".\n  \tshoe_size: 43\n  \t^',
  );
});

test('a misspelt field or enum value gets a suggestion', () => {
  assert.match(
    errorOf('max_batchsize: 4').reason,
    /has no field named "max_batchsize"\. Did you mean "max_batch_size"\?/,
  );
  assert.match(
    errorOf('input { datatype: 1 }').reason,
    /"inference\.ModelInput".*Did you mean "data_type"\?/,
  );
  assert.match(
    errorOf('metric_tags { kei: "a" }').reason,
    /"inference\.MetricTagsEntry".*Did you mean "key"\?/,
  );
  assert.match(errorOf('input { data_type: TYPE_FP31 }').reason, /Did you mean "TYPE_FP/);
});

test('errors say what protobuf says', () => {
  const cases: [text: string, reason: string, place: string][] = [
    ['max_batch_size: [ 4', 'Expected integer, got: [', '1:17'],
    ['name: "a" name: "b"', 'Non-repeated field "name" is specified multiple times.', '1:11'],
    [
      'dynamic_batching { }\ndynamic_batching { }',
      'Non-repeated field "dynamic_batching" is specified multiple times.',
      '2:1',
    ],
    [
      'dynamic_batching { } sequence_batching { }',
      'Field "sequence_batching" is specified along with field "dynamic_batching", another member of oneof "scheduling_choice".',
      '1:22',
    ],
    ['input { dims [ 1 ] }', 'Expected ":", found "[".', '1:14'],
    ['input "x"', 'Expected "{", found ""x"".', '1:7'],
    ['input {', 'Expected "}", found end of text.', '1:8'],
    ['input < name: "x" }', 'Expected identifier, got: }', '1:19'],
    ['input { dims: [ 1 2 ] }', 'Expected ",", found "2".', '1:19'],
    ['input { dims: 99999999999999999999 }', 'Integer out of range (99999999999999999999)', '1:15'],
    ['max_batch_size: 2147483648', 'Integer out of range (2147483648)', '1:17'],
    ['instance_group { rate_limiter { priority: -1 } }', 'Expected integer, got: -', '1:43'],
    ['input { optional: yes }', 'Invalid value for boolean field "optional". Value: "yes".', '1:19'],
    ['input { optional: 2 }', 'Integer out of range (2)', '1:19'],
    ['input { data_type: 99 }', 'Unknown enumeration value of "99" for field "data_type".', '1:20'],
    ['name: 5', 'Expected string, got: 5', '1:7'],
    ['name: "abc', 'Unexpected end of string.', '1:7'],
    ['name: "\\q"', 'Invalid escape sequence in string literal.', '1:8'],
    ['name: "\\xff"', 'String field "name" contains invalid UTF-8 data.', '1:7'],
    ['max_batch_size: 09', 'Numbers starting with leading zero must be in octal.', '1:18'],
    [
      'sequence_batching { direct { minimum_slot_utilization: 0x1 } }',
      'Expect a decimal number, got: 0x1',
      '1:56',
    ],
    ['[a.b] { }', 'Message type "inference.ModelConfig" has no extensions.', '1:1'],
    [
      'nam\u00e9: "x"',
      'Message type "inference.ModelConfig" has no field named "nam". Did you mean "name"?',
      '1:1',
    ],
    ['name: \u0001', 'Invalid control characters encountered in text.', '1:7'],
    [', name: "x"', 'Expected identifier, got: ,', '1:1'],
  ];
  for (const [text, reason, place] of cases) {
    const error = errorOf(text);
    assert.equal(error.reason, reason, text);
    assert.equal(`${error.line}:${error.column}`, place, text);
  }
});

test('a very long line is shown around the caret only', () => {
  const error = errorOf(`name: "${'x'.repeat(100_000)}" shoe_size: 1`);
  assert.ok(error.message.length < 500);
  assert.match(error.message, /shoe_size: 1\n/);
});
