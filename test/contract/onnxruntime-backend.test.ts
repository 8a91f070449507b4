// The ONNX Runtime backend under the contract of backend.case.ts, with a model that computes Y = 3 X.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { onnxruntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.ts';
import { TEST_MODELS } from '../../src/backends/onnxruntime/test-models.ts';
import { describeBackend } from './backend.case.ts';
import { makeConfig, makeContext } from './load-context.ts';

const directory = mkdtempSync(join(tmpdir(), 'nereid-contract-'));
after(() => rmSync(directory, { recursive: true }));
writeFileSync(join(directory, 'model.onnx'), Buffer.from(TEST_MODELS.AFFINE, 'base64'));

describeBackend({
  backend: onnxruntimeBackend,
  makeContext: () => makeContext(makeConfig('onnxruntime'), directory),
  makeBrokenContext: () => makeContext(makeConfig('onnxruntime'), join(directory, 'nowhere')),
  expected: (value) => 3 * value + 0,
});
