// What is said of a config.pbtxt that cannot be parsed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import { factsOf, read, thrownBy } from './test-facts.ts';

/** A config text that cannot be parsed, and what the explanation says. */
const UNREADABLE: readonly (readonly [config: string, says: RegExp])[] = [
  [
    'max_bach_size: 4',
    /'max_batch_size' is probably meant[\s\S]*m\/config\.pbtxt:1:1 write max_batch_size in place/,
  ],
  ['input { name: "X" zzzzzzzz: 1 }', /'zzzzzzzz' is no field of ModelInput/],
  ['input { data_type: FP32 }', /'FP32' is no value of data_type[\s\S]*write data_type: TYPE_FP32/],
  ['input { data_type: "TYPE_FP32" }', /quotation marks[\s\S]*write TYPE_FP32 without/],
  ['backend: onnxruntime', /not in quotation marks[\s\S]*write "onnxruntime" in place of onnxruntime/],
  ['max_batch_size: [ 4', /line 1[\s\S]*without \[ \]/],
  ['max_batch_size: "4"', /a whole number is expected/],
  ['dynamic_batching {', /the file ends inside[\s\S]*close the last/],
  ['name: "a"\nname: "b"', /line 2 cannot be read: 'name' is written twice/],
  ['dynamic_batching { }\nsequence_batching { }', /exclude each other[\s\S]*remove the other/],
  ['{ "name": "m" }', /looks like JSON/],
  ['backend "x"', /':' is missing/],
  ['response_cache { enable: maybe }', /enable: true or enable: false/],
  ['name: "abc', /line 1 cannot be read/],
];

describe('a config that cannot be parsed', () => {
  for (const [config, says] of UNREADABLE) {
    test(config.replaceAll('\n', ' ⏎ '), () => {
      const error = thrownBy(() => parseModelConfig(config));
      assert.match(read(error, { ...factsOf(''), config: undefined }), says);
    });
  }
});
