// A backend that this program does not have: Triton's own that are not served yet, and misspelt ones.

import { nearestName } from '../../../wire/pbtxt/nearest-name.ts';
import { type Explanation, type ModelFacts, shellPath, writeInConfig } from './explanation.ts';

/** Triton's backends that are not served yet, and how a model of theirs becomes one that runs here. */
const TRITON_BACKENDS: Readonly<Record<string, string>> = {
  fil: 'onnxmltools.convert_xgboost(booster, …), saved as <target>',
  dali: '',
  vllm: '',
  tensorrtllm: '',
  llama: '',
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
