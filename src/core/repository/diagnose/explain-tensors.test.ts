// What is said of inputs and outputs that do not fit the model file, and the lines to write.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { invalidArgument } from '../../../domain/status.ts';
import { diagnose } from './diagnose.ts';
import { factsOf, IO, read, signature } from './test-facts.ts';

describe('a config that does not fit the model file', () => {
  test('datatype: the line to write', () => {
    const error = invalidArgument(
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'X', model provides TYPE_FP32",
    );
    const text = read(error, factsOf(`max_batch_size: 4 ${IO.replace('TYPE_FP32', 'TYPE_INT32')}`));
    assert.match(text, /TYPE_INT32 in the config and TYPE_FP32 in the model file/);
    assert.ok(text.endsWith('\n  input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]'), text);
  });

  test('datatype: BYTES is spelled TYPE_STRING in a config', () => {
    const error = invalidArgument(
      "unable to load model 'm', configuration expects datatype TYPE_FP32 for output 'Y', model provides TYPE_BYTES",
    );
    assert.match(
      read(error, factsOf(IO)),
      /output \[ \{ name: "Y" data_type: TYPE_STRING dims: \[ 2 \] \} \]/,
    );
  });

  test('name: the nearest one, the other tensors kept', () => {
    const config = `max_batch_size: 4
      output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] },
               { name: "SCORE" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "l.txt" } ]`;
    const error = invalidArgument("unexpected inference output 'SCORE', allowed outputs are: SCORES, Y");
    const file = signature({
      outputs: [
        { name: 'Y', data_type: 'TYPE_FP32', shape: [-1, 2] },
        { name: 'SCORES', data_type: 'TYPE_FP32', shape: [-1, 3] },
      ],
    });
    const { what, fix } = diagnose(error, factsOf(config, { file }));
    assert.equal(what, "the model file has no output 'SCORE'; 'SCORES' is probably meant");
    assert.deepEqual(fix.slice(1), [
      '  output [',
      '    { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] },',
      '    { name: "SCORES" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "l.txt" }',
      '  ]',
    ]);
  });

  test('number of inputs: which are missing', () => {
    const error = invalidArgument(
      "unable to load model 'm', configuration expects 1 inputs, model provides 2",
    );
    const inputs = [...signature().inputs, { name: 'MASK', data_type: 'TYPE_BOOL', shape: [-1] }];
    const text = read(error, factsOf(`max_batch_size: 4 ${IO}`, { file: signature({ inputs }) }));
    assert.match(text, /lists 1 input, the model file has 2\nnot in the config: MASK/);
    assert.match(text, /name: "MASK" data_type: TYPE_BOOL dims: \[ 1 \] reshape \{ shape: \[ \] \}/);
  });

  test('dims: with and without a batch dimension', () => {
    const rank = (shape: string, specified: string) =>
      invalidArgument(
        `model 'm', tensor 'X': the model expects 2 dimensions (shape ${shape}) but the model configuration specifies ${specified}`,
      );
    const batching = rank(
      '[-1,2]',
      '3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,1,2])',
    );
    const batched = read(batching, factsOf(`max_batch_size: 4 ${IO}`, { file: signature() }));
    assert.match(
      batched,
      /\[-1,1,2\] by the config and \[-1,2\] in the model file[\s\S]*dims: \[ 2 \] \} \]$/,
    );
    const single = read(rank('[-1,2]', '1 dimensions (shape [2])'), factsOf(IO, { file: signature() }));
    assert.match(single, /the whole shape[\s\S]*dims: \[ -1, 2 \] \} \]\nor, .* {2}max_batch_size: 8$/);
    assert.match(read(batching, factsOf(IO)), /so that the whole shape is \[-1,2\]/);
  });

  test('a fixed batch dimension', () => {
    const file = signature({
      inputs: [{ name: 'X', data_type: 'TYPE_FP32', shape: [1, 2] }],
      canBatch: false,
    });
    const facts = factsOf(`max_batch_size: 4 ${IO}`, { file });
    const error = invalidArgument(
      "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [1,2]",
    );
    assert.match(
      read(error, facts),
      /'X' has shape \[1,2\][\s\S]*max_batch_size: 0\n[\s\S]*dims: \[ 1, 2 \]/,
    );
    const autofill = invalidArgument(
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
    );
    assert.match(read(autofill, facts), /max_batch_size: 4[\s\S]*max_batch_size: 0/);
  });

  test('scalars and optional inputs', () => {
    const scalar = invalidArgument(
      "unable to load model 'm', scalar tensor 'X', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: [2].",
    );
    assert.match(read(scalar, factsOf(IO)), /input 'X' has shape \[2\] by the config and \[\]/);
    const optional = invalidArgument(
      "unable to load model 'm', optional input 'X' is not supported for models that support batching",
    );
    assert.match(read(optional, factsOf(IO)), /remove {2}optional: true/);
  });
});
