// What is said of directories, model files and backends, and the commands to paste.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { internal, invalidArgument, type StatusError } from '../../../domain/status.ts';
import { parseModelConfig } from '../../../wire/pbtxt/parse-model-config.ts';
import { completeBackend } from '../complete-backend.ts';
import type { ModelFacts } from './explanation.ts';
import { factsOf, read, thrownBy } from './test-facts.ts';

const NO_VERSION = invalidArgument(
  "at least one version must be available under the version policy of model 'm'",
);
const NO_BACKEND = thrownBy(() =>
  completeBackend(parseModelConfig(''), { modelName: 'm', versionEntries: undefined }),
);

/** Errors about files, what is known, and what the explanation says. */
const FILES: readonly (readonly [
  title: string,
  error: StatusError,
  facts: Partial<ModelFacts>,
  says: RegExp,
])[] = [
  ['no version', NO_VERSION, { versions: [] }, /mkdir models\/m\/1 && cp <file> models\/m\/1\/model\.onnx/],
  ['version in words', NO_VERSION, { versions: [], ignored: ['v2'] }, /mv models\/m\/v2 models\/m\/2/],
  [
    'file beside the config',
    NO_VERSION,
    { versions: [], modelEntries: ['config.pbtxt', 'net.onnx'] },
    /mkdir models\/m\/1 && mv models\/m\/net\.onnx models\/m\/1\/model\.onnx/,
  ],
  [
    'policy without a version',
    NO_VERSION,
    { config: parseModelConfig('version_policy { specific { versions: 5 } }'), versions: [1, 2] },
    /asks for version 5, the directory has 1, 2[\s\S]*versions: \[ 1, 2 \]/,
  ],
  ['no model at all', NO_BACKEND, { versions: [], modelEntries: ['README.md'] }, /is no model/],
  [
    'loose file, no config',
    NO_BACKEND,
    { versions: [], modelEntries: ['model.onnx'] },
    /mkdir models\/m\/1 && mv/,
  ],
  [
    'odd file name',
    NO_BACKEND,
    { versionEntries: ['net.onnx'] },
    /mv models\/m\/1\/net\.onnx models\/m\/1\/model\.onnx/,
  ],
  [
    'no file, no backend',
    NO_BACKEND,
    { versionEntries: [] },
    /put the model file there: models\/m\/1\/model\.onnx/,
  ],
  [
    'a directory of another name',
    invalidArgument("unexpected directory name 'm' for model 'n', directory name must equal model name"),
    {},
    /name: "m"[\s\S]*mv models\/m models\/n/,
  ],
  [
    'missing file',
    internal('failed to stat file models/m/1/model.onnx'),
    { versionEntries: ['modell.onnx'] },
    /mv models\/m\/1\/modell\.onnx models\/m\/1\/model\.onnx[\s\S]*default_model_filename: "modell\.onnx"/,
  ],
  [
    'empty version',
    internal('failed to stat file models/m/1/model.onnx'),
    { versionEntries: [] },
    /empty directory[\s\S]*cp <file> models\/m\/1\/model\.onnx/,
  ],
  [
    'missing labels',
    internal('failed to open text file for read models/m/l.txt: No such file or directory'),
    {
      config: parseModelConfig('output { name: "Y" label_filename: "l.txt" }'),
      modelEntries: ['labels.txt'],
    },
    /output 'Y' names it[\s\S]*label_filename: "labels\.txt"/,
  ],
  [
    'not ONNX',
    internal('onnx runtime error 7: Load model from a failed:Protobuf parsing failed.'),
    {},
    /damaged/,
  ],
  [
    'a Git LFS pointer',
    internal('onnx runtime error 7: Load model from a failed:Protobuf parsing failed.'),
    { isLfsPointer: true },
    /git -C models\/m lfs pull/,
  ],
  [
    'a newer file format',
    internal('onnx runtime error 1: Unsupported model IR version: 13, max supported IR version: 12'),
    {},
    /IR version 13, the runtime reads up to 12/,
  ],
  [
    'a newer opset',
    internal('onnx runtime error 1: … current official support for domain ai.onnx is till opset 24.'),
    {},
    /opset 24 of ai\.onnx at most/,
  ],
  ['weights elsewhere', internal('External data path does not exist'), {}, /cp <file>\.data models\/m\/1\//],
  ['custom operators', internal('Fatal error: my:Op(-1) is not a registered function/op'), {}, /my:Op\(-1\)/],
];

describe('files', () => {
  for (const [title, error, facts, says] of FILES) {
    test(title, () => assert.match(read(error, factsOf('', facts)), says));
  }

  test('a path with a blank can be pasted', () => {
    const facts = factsOf('', { path: "my models/it's", versions: [] });
    assert.match(read(NO_VERSION, facts), /mkdir 'my models\/it'\\''s\/1'/);
  });
});

describe('backends and devices', () => {
  const missing = (name: string) =>
    invalidArgument(
      `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
    );

  test('misspelt', () => {
    assert.match(
      read(missing('onnxruntme'), factsOf('')),
      /this version has: onnxruntime, identity[\s\S]*backend: "onnxruntime"/,
    );
  });

  test('unknown', () => {
    assert.match(read(missing('zzz'), factsOf('', { versionEntries: [] })), /use one of them/);
  });

  test("Triton's own, not served yet", () => {
    assert.match(
      read(missing('fil'), factsOf('')),
      /not served by this version yet[\s\S]*onnxmltools[\s\S]*models\/m\/1\/model\.onnx/,
    );
    assert.match(read(missing('dali'), factsOf('')), /keep this model on Triton/);
  });

  test('GPUs and providers', () => {
    const id = invalidArgument(
      'instance group m_0 of model m specifies invalid or unsupported gpu id 7. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1',
    );
    assert.match(read(id, factsOf('', { gpuIds: [0, 1] })), /GPU 7 does not exist[\s\S]*gpus: \[ 0, 1 \]/);
    const provider = invalidArgument(
      'CUDAExecutionProvider is requested, but ONNX Runtime 1.30.0 at lib.so has only: CPUExecutionProvider.',
    );
    assert.match(read(provider, factsOf('')), /needs CUDAExecutionProvider[\s\S]*library-path/);
    const accelerator = invalidArgument("unknown Execution Accelerator 'cudda' is requested");
    assert.match(read(accelerator, factsOf('')), /no execution accelerator 'cudda'/);
  });
});
