// What the composing models of an ensemble must offer: the inputs and outputs that the steps map, in fitting datatypes
// and shapes, and batches as large as the ensemble's. Triton's checks, in its order and words. Called when an ensemble
// is loaded and by `nereid validate`; pure.

import type { EnsembleStep, ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { shapeText } from '../../domain/tensor.ts';

/** A composing model, as far as an ensemble must know it. */
export interface ComposingModel {
  /** As it is served. */
  readonly config: ModelConfig;
  readonly isDecoupled: boolean;
}

/** What is known of an ensemble tensor, from the first who named it. */
interface InferredTensor {
  readonly model: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  /** With the batch dimension, as error texts show it. */
  readonly fullDims: readonly number[];
}

type IoConfig = ModelConfig['input'][number] | ModelConfig['output'][number];

/** Throws when the ensemble cannot run; `models` has one entry per step. */
export function checkSteps(config: ModelConfig, models: readonly ComposingModel[]): void {
  const steps = config.ensemble_scheduling?.step ?? [];
  const tensors = new Map<string, InferredTensor>();
  for (const io of [...config.input, ...config.output]) {
    tensors.set(io.name, inferredFrom(config.name, config.max_batch_size, io));
  }
  steps.forEach((step, i) => {
    const model = models[i]!.config;
    if (model.max_batch_size < config.max_batch_size) {
      throw invalidArgument(
        `ensemble ${config.name} allows maximum batch size ${config.max_batch_size}, but it contains model ${step.model_name} which only allows maximum batch size to be ${model.max_batch_size}`,
      );
    }
    checkInputs(config.name, { step, model, tensors });
    checkOutputs(config.name, { step, model, tensors });
  });
}

interface StepCheck {
  readonly step: EnsembleStep;
  readonly model: ModelConfig;
  readonly tensors: Map<string, InferredTensor>;
}

function checkInputs(ensemble: string, { step, model, tensors }: StepCheck): void {
  for (const [input, tensor] of Object.entries(step.input_map)) {
    if (model.input.some(({ name }) => name === input)) continue;
    throw invalidArgument(
      `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${step.model_name}`,
    );
  }
  for (const input of model.input) {
    const tensor = step.input_map[input.name];
    if (tensor !== undefined) {
      infer(ensemble, { tensor, tensors, found: inferredFrom(step.model_name, model.max_batch_size, input) });
    } else if (!input.optional) {
      throw invalidArgument(
        `in ensemble ${ensemble}, input ${input.name} in model ${model.name} is not mapped to any ensemble tensors`,
      );
    }
  }
}

function checkOutputs(ensemble: string, { step, model, tensors }: StepCheck): void {
  for (const [output, tensor] of Object.entries(step.output_map)) {
    const found = model.output.find(({ name }) => name === output);
    if (found === undefined) {
      throw invalidArgument(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${step.model_name}`,
      );
    }
    infer(ensemble, { tensor, tensors, found: inferredFrom(step.model_name, model.max_batch_size, found) });
  }
}

function inferredFrom(model: string, maxBatchSize: number, io: IoConfig): InferredTensor {
  const { dims, data_type: dataType } = io;
  return { model, dataType, dims, fullDims: maxBatchSize > 0 ? [-1, ...dims] : dims };
}

function infer(
  ensemble: string,
  named: { tensor: string; tensors: Map<string, InferredTensor>; found: InferredTensor },
): void {
  const { tensor, tensors, found } = named;
  const known = tensors.get(tensor);
  if (known === undefined) {
    tensors.set(tensor, found);
    return;
  }
  const opening = `in ensemble ${ensemble}, ensemble tensor ${tensor}: `;
  if (known.dataType !== found.dataType) {
    throw invalidArgument(
      `${opening}inconsistent data type: ${known.dataType} is inferred from model ${known.model} while ${found.dataType} is inferred from model ${found.model}`,
    );
  }
  // A model without batches may take what batches give, if its first dimension is free.
  if (!isCompatible(known.dims, found.dims) && !isCompatible(known.fullDims, found.fullDims)) {
    throw invalidArgument(
      `${opening}inconsistent shape: ${shapeText(known.fullDims)} is inferred from model ${known.model} while ${shapeText(found.fullDims)} is inferred from model ${found.model}`,
    );
  }
}

function isCompatible(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, i) => dim === -1 || b[i] === -1 || dim === b[i]);
}
