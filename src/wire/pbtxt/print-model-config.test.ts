// Printing and parsing are inverse, for random configs and for what mutation leaves of real ones.

import assert from 'node:assert/strict';
import test from 'node:test';
import { randomModelConfig } from '../../domain/random-model-config.ts';
import { createPrng } from '../../lib/prng.ts';
import { parseModelConfig } from './parse-model-config.ts';
import { PbtxtError } from './pbtxt-error.ts';
import { printModelConfig } from './print-model-config.ts';

test('prints in declaration order without defaults', () => {
  const text = `max_batch_size: 4 dynamic_batching { priority_queue_policy { key: 10 value { } }
    priority_queue_policy { key: 9 value { max_queue_size: 1 } } }
    name: "a\\"b" input { dims: [ 2, -1 ] data_type: TYPE_FP32 name: "X" }`;
  const config = parseModelConfig(text);
  const printed = `name: "a\\"b"
max_batch_size: 4
input {
  name: "X"
  data_type: TYPE_FP32
  dims: [ 2, -1 ]
}
dynamic_batching {
  priority_queue_policy {
    key: 9
    value {
      max_queue_size: 1
    }
  }
  priority_queue_policy {
    key: 10
    value { }
  }
}
`;
  assert.equal(printModelConfig(config), printed);
});

test('floats print with the fewest digits', () => {
  const config = parseModelConfig('sequence_batching { direct { minimum_slot_utilization: 0.1 } }');
  assert.match(printModelConfig(config), /minimum_slot_utilization: 0\.1\n/);
});

test('what is printed parses back to the same config', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const config = randomModelConfig(createPrng(seed));
    assert.deepEqual(parseModelConfig(printModelConfig(config)), config, `seed ${seed}`);
  }
});

const SOURCES = [
  `backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] reshape: { shape: [ ] } } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
model_warmup [
  { name: "zeros" batch_size: 1 inputs: { key: "X" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }
]`,
  `max_batch_size: 16
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
parameters { key: "note" value { string_value: "hello" } }
parameters: [ { key: "intra_op_thread_count", value: { string_value: "1" } } ]
metric_tags { key: "team" value: "blue\\x41\\u00e9" } # end`,
  `sequence_batching {
  max_sequence_idle_microseconds: 5000000
  control_input [ { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1.5e-3 ] } ] } ]
  state [ { input_name: "I" initial_state: { dims: [ 0x1 ] data_file: 'sum0' name: "n" } } ]
}`,
];
const SNIPPETS = [
  '{',
  '}',
  '[',
  ']',
  '<',
  '>',
  ':',
  ',',
  ';',
  '"',
  "'",
  '\\',
  '#',
  '-',
  '0x',
  '09',
  '1e',
  '.',
  '\u0000',
  'é',
  'inf',
  '\ud800',
  '__proto__',
  'name: ',
  '\n',
];

test('no mutation of a config makes the parser throw anything but PbtxtError', () => {
  const prng = createPrng(7);
  let parsed = 0;
  for (let i = 0; i < 6000; i++) {
    let text = prng.pick(SOURCES);
    for (let edits = prng.integer(1, 4); edits > 0; edits--) {
      const from = prng.integer(0, text.length);
      const to = Math.min(text.length, from + prng.integer(0, 6));
      const inserted = prng.boolean(0.3) ? prng.pick(SOURCES).slice(from, to + 10) : prng.pick(SNIPPETS);
      text = text.slice(0, from) + inserted + text.slice(to);
    }
    try {
      const config = parseModelConfig(text);
      assert.deepEqual(parseModelConfig(printModelConfig(config)), config, text);
      parsed++;
    } catch (error) {
      if (error instanceof PbtxtError) continue;
      throw error;
    }
  }
  assert.ok(parsed > 100, `only ${parsed} mutations still parsed: the test says little`);
});
