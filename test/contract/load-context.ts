// The context in which the contract tests load a model: one FP32 input and output of two elements.
import type { LoadContext } from '../../src/backend/sdk.ts';
import type { ModelConfig } from '../../src/domain/model-config.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';

const TENSOR = 'data_type: TYPE_FP32 dims: [ 2 ]';

export function makeConfig(backend: string, extra = ''): ModelConfig {
  return parseModelConfig(`name: "m" backend: "${backend}" max_batch_size: 4
    input [ { name: "X" ${TENSOR} } ] output [ { name: "Y" ${TENSOR} } ] ${extra}`);
}

export function makeContext(config: ModelConfig, directory = ''): LoadContext {
  return {
    modelName: config.name,
    version: 1,
    modelDirectory: directory,
    versionDirectory: directory,
    config,
    isAutoComplete: true,
    backendConfig: {},
    placement: { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
    log: () => {},
  };
}
