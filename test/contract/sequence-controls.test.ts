// Backends that run models of their own kind: the control tensors of a sequence reach the model and are no outputs, and a
// state that nobody would keep is refused.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Backend, ExecuteBatch } from '../../src/backend/sdk.ts';
import { identityBackend } from '../../src/backends/identity/identity-backend.ts';
import { nodeBackend } from '../../src/backends/node/node-backend.ts';
import { makeConfig, makeContext } from './load-context.ts';

const CONTROL = `control_input [ { name: "READY" control [
  { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] } ]`;
const STATE = 'state [ { input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: [ 2 ] } ]';

const directory = mkdtempSync(join(tmpdir(), 'nereid-controls-'));
after(() => rmSync(directory, { recursive: true }));
writeFileSync(
  join(directory, 'model.mjs'),
  `export default {
    execute: (requests) => requests.map((request) => {
      if (request.input('READY').data[0] !== 1) throw new Error('not ready');
      return { outputs: [request.input('X').rename('Y')] };
    }),
  };
`,
);

/** X is [4, 5], READY is 1. */
function makeBatch(): ExecuteBatch {
  const payload = Buffer.alloc(68);
  [4, 5].forEach((value, i) => {
    payload.writeFloatLE(value, i * 4);
  });
  payload.writeFloatLE(1, 64);
  const inputs = [
    { index: 0, shape: [1, 2], offset: 0, byteLength: 8 },
    { index: 1, shape: [1, 1], offset: 64, byteLength: 4 },
  ];
  return { id: 1, payload, requests: [{ inputs, requestedOutputs: [] }] };
}

function load(backend: Backend, sequencing: string) {
  const config = makeConfig(backend.name, `sequence_batching { ${sequencing} }`);
  return backend.load(makeContext(config, directory));
}

for (const backend of [identityBackend, nodeBackend]) {
  test(`${backend.name}: a control reaches the model and is no output`, async () => {
    const model = await load(backend, CONTROL);
    const instance = await model.start(model.config);
    const { results } = await instance.execute(makeBatch(), () => assert.fail('a sender was asked for'));
    const [outputs] = results;
    assert.ok(Array.isArray(outputs), String(outputs));
    assert.deepEqual(
      outputs.map(({ index, shape, data }) => [index, shape, data.readFloatLE(4)]),
      [[0, [1, 2], 5]],
    );
    await instance.close();
  });
}

test('node: implicit state is refused, with what to do instead', async () => {
  const model = await load(nodeBackend, STATE);
  await assert.rejects(model.start(model.config), {
    code: 'UNSUPPORTED',
    message:
      /keeps no implicit state for model 'm': .* keep the state in the model, by request.correlationId/,
  });
});
