// The rules of `ensemble_scheduling` that need no other model: fields of the steps, and a data flow in which
// every tensor is written once and used. Called by validate-config.ts. What composing models must offer
// is checked when they are known.

import type { EnsembleStep, ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

export const ENSEMBLE_PLATFORM = 'ensemble';

/** A tensor of the data flow: `previous` are needed to write it, `next` are written from it. */
interface EnsembleTensor {
  readonly name: string;
  readonly previous: EnsembleTensor[];
  readonly next: EnsembleTensor[];
  isStepOutput: boolean;
  isReady: boolean;
}

export function validateEnsembleScheduling(config: ModelConfig, steps: readonly EnsembleStep[]): void {
  const { name } = config;
  if (config.platform !== ENSEMBLE_PLATFORM) {
    throw invalidArgument(
      `ensemble scheduling cannot be set for model '${name}' whose platform is not ${ENSEMBLE_PLATFORM}`,
    );
  }
  if (config.instance_group.length > 0) {
    throw invalidArgument(`instance group should not be specified for ensemble '${name}'`);
  }
  if (config.optimization !== undefined) {
    throw invalidArgument(`optimization should not be specified for ensemble '${name}'`);
  }
  if (config.model_warmup.length > 0) {
    throw invalidArgument(`model_warmup can not be specified for ensemble '${name}'`);
  }
  if (steps.length === 0) throw invalidArgument(`must specify 'step' for ensemble '${name}'`);
  const tensors = buildGraph(name, steps);
  flowFromInputs(config, tensors);
  validateOutputs(config, tensors);
}

function buildGraph(modelName: string, steps: readonly EnsembleStep[]): Map<string, EnsembleTensor> {
  const tensors = new Map<string, EnsembleTensor>();
  steps.forEach((step, i) => {
    validateStep(modelName, step, i);
    const outputs = Object.values(step.output_map).map((tensorName) => {
      const tensor = tensorNamed(tensors, tensorName);
      if (tensor.isStepOutput) {
        throw invalidArgument(
          `ensemble tensor '${tensorName}' can appear in an output map only once for ensemble '${modelName}' step ${i}`,
        );
      }
      tensor.isStepOutput = true;
      return tensor;
    });
    for (const tensorName of Object.values(step.input_map)) {
      const input = tensorNamed(tensors, tensorName);
      for (const output of outputs) {
        output.previous.push(input);
        input.next.push(output);
      }
    }
  });
  return tensors;
}

function validateStep(modelName: string, step: EnsembleStep, i: number): void {
  const missing =
    step.model_name === ''
      ? 'model_name'
      : Object.keys(step.input_map).length === 0
        ? 'input_map'
        : Object.keys(step.output_map).length === 0
          ? 'output_map'
          : undefined;
  if (missing !== undefined) {
    throw invalidArgument(`must specify '${missing}' in step ${i} of ensemble '${modelName}'`);
  }
}

function tensorNamed(tensors: Map<string, EnsembleTensor>, name: string): EnsembleTensor {
  let tensor = tensors.get(name);
  if (tensor === undefined) {
    tensor = { name, previous: [], next: [], isStepOutput: false, isReady: false };
    tensors.set(name, tensor);
  }
  return tensor;
}

/** Marks every tensor that can be written when the ensemble's inputs are there. */
function flowFromInputs(config: ModelConfig, tensors: ReadonlyMap<string, EnsembleTensor>): void {
  const ready: EnsembleTensor[] = [];
  for (const input of config.input) {
    const tensor = tensors.get(input.name);
    // Triton's text lacks the opening quotation mark.
    if (tensor === undefined) {
      throw invalidArgument(`ensemble input '${input.name}' for ensemble ${config.name}' is not used`);
    }
    tensor.isReady = true;
    ready.push(tensor);
  }
  for (let tensor = ready.shift(); tensor !== undefined; tensor = ready.shift()) {
    for (const next of tensor.next) {
      if (next.isReady || !next.previous.every((previous) => previous.isReady)) continue;
      next.isReady = true;
      ready.push(next);
    }
  }
}

function validateOutputs(config: ModelConfig, tensors: ReadonlyMap<string, EnsembleTensor>): void {
  const outputNames = new Set(config.output.map((output) => output.name));
  for (const name of outputNames) {
    const tensor = tensors.get(name);
    if (tensor?.isReady) continue;
    const lacking = tensor?.previous.find((previous) => !previous.isReady);
    const why =
      lacking === undefined
        ? ''
        : `: at least one of its depending tensors, '${lacking.name}', is not connected`;
    throw invalidArgument(`output '${name}' for ensemble '${config.name}' is not written${why}`);
  }
  for (const tensor of tensors.values()) {
    if (outputNames.has(tensor.name) || (tensor.isReady && tensor.next.length > 0)) continue;
    throw invalidArgument(`ensemble tensor '${tensor.name}' is unused in ensemble '${config.name}'`);
  }
}
