// A backend that this program does not have: Triton's own that are not served yet, and misspelt ones.

import { nearestName } from '../../../wire/pbtxt/nearest-name.ts';
import { type Explanation, type ModelFacts, shellPath, writeInConfig } from './explanation.ts';

/** Triton's backends, and how a model of theirs becomes one that runs here. */
const TRITON_BACKENDS: Readonly<Record<string, string>> = {
  onnxruntime: '',
  identity: '',
  pytorch: 'torch.onnx.export(model, example_input, "<target>", dynamic_axes=…)',
  tensorflow: 'python -m tf2onnx.convert --saved-model <directory> --output <target>',
  tensorrt: 'cp <the ONNX file the plan was built from> <target>',
  openvino: 'cp <the ONNX file the IR was made from> <target>',
  fil: 'onnxmltools.convert_xgboost(booster, …), saved as <target>',
  python: '',
  dali: '',
  vllm: '',
  tensorrtllm: '',
  llama: '',
  repeat: '',
  square: '',
};

export const TRITON_BACKEND_NAMES: readonly string[] = Object.keys(TRITON_BACKENDS);

export function explainBackend(backend: string, facts: ModelFacts): Explanation {
  const known = facts.backends.join(', ');
  const conversion = TRITON_BACKENDS[backend];
  if (conversion !== undefined) {
    const target = shellPath(facts.path, facts.version ?? 1, 'model.onnx');
    return {
      what: `backend "${backend}" is not served by this version yet`,
      why: `this version has: ${known}`,
      fix:
        conversion === ''
          ? ['keep this model on Triton for now, or move it out of the repository']
          : [
              'make an ONNX file of the model:',
              `  ${conversion.replace('<target>', target)}`,
              ...writeInConfig(facts, ['backend: "onnxruntime"']),
            ],
    };
  }
  const meant = nearestName(backend, [...facts.backends, ...TRITON_BACKEND_NAMES]);
  const fromFile = facts.versionEntries.some((name) => name.endsWith('.onnx')) ? 'onnxruntime' : undefined;
  const right = meant ?? fromFile;
  return {
    what: `there is no backend "${backend}"`,
    why: `this version has: ${known}`,
    fix: right === undefined ? ['use one of them'] : writeInConfig(facts, [`backend: "${right}"`]),
  };
}
