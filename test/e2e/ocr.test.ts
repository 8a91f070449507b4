// A real pipeline: text detection and recognition of the PyPI package rapidocr-onnxruntime, served from examples/ocr as an
// ensemble and as models that call other models. What they read is compared with what the package itself reads. The
// package is fetched once into the user's cache; where it cannot be had the test is skipped with pip's reason.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { findPackages } from '../support/pip-packages.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** All that is imported: the package asks for an OpenCV that needs a display's libraries, this one does not. */
const PACKAGES = [
  'rapidocr-onnxruntime==1.4.4',
  'onnxruntime',
  'flatbuffers',
  'packaging',
  'opencv-python-headless',
  'pillow',
  'pyclipper',
  'shapely',
  'PyYAML',
];

const packages =
  pythonSkip === false ? await findPackages('rapidocr-onnxruntime', PACKAGES) : { reason: pythonSkip };

describe('reading text from images', { skip: 'reason' in packages && packages.reason }, () => {
  const script = 'e2e/ocr.py';
  const env = { PYTHONPATH: 'folder' in packages ? packages.folder : '' };
  let folder: TestRepository;
  let server: RunningServer;
  let output = '';

  before(async () => {
    folder = createRepository();
    cpSync(inRoot('examples', 'ocr'), folder.path, { recursive: true });
    const made = await runPython({
      script: '../examples/ocr/get_models.py',
      args: [folder.at('models')],
      env,
    });
    assert.equal(made.code, 0, made.output);
    server = await startServer({
      repository: folder.at('models'),
      isGrpc: true,
      env: { ...env, NEREID_PYTHON: process.env.NEREID_TEST_PYTHON ?? '' },
    });
    ({ output } = await runPython({ script, args: [server.grpcAddress, server.httpAddress], env }));
  });

  after(async () => {
    await server?.stop();
    folder?.remove();
  });

  testChecks(script, () => `${output}\n--- server log\n${server.logs()}`);
});
