// Random ensembles: up to six steps that take tensors of the inputs and of earlier steps, some decoupled, some batching,
// some ensembles themselves; every graph is one that a load would accept.
import type { EnsembleStep, ModelConfig } from '../../src/domain/model-config.ts';
import type { Prng } from '../../src/lib/prng.ts';
import { EMPTY_CONFIG } from './simulated-model.ts';

export interface RandomEnsemble {
  readonly config: ModelConfig;
  /** One per step; undefined where the step is `nested`. */
  readonly models: readonly (ModelConfig | undefined)[];
}

interface RandomTensor {
  readonly name: string;
  /** 0, or the number of the decoupled step it comes from. */
  readonly origin: number;
}

function ioOf(name: string, isOptional = false): ModelConfig['input'][number] {
  return {
    name,
    data_type: 'TYPE_UINT32',
    format: 'FORMAT_NONE',
    dims: [1],
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: isOptional,
    is_non_linear_format_io: false,
  };
}

function outputOf(name: string): ModelConfig['output'][number] {
  const { name: _name, data_type, dims, is_shape_tensor, is_non_linear_format_io } = ioOf(name);
  return { name, data_type, dims, label_filename: '', is_shape_tensor, is_non_linear_format_io };
}

/** `nested` may be used as a step; it takes IN0 and answers with OUT0. */
export function randomEnsemble(
  name: string,
  prng: Prng,
  nested: { config: ModelConfig; isDecoupled: boolean } | undefined,
): RandomEnsemble {
  const tensors: RandomTensor[] = [{ name: 'IN0', origin: 0 }];
  if (prng.boolean(0.4)) tensors.push({ name: 'IN1', origin: 0 });
  const inputCount = tensors.length;
  const steps: EnsembleStep[] = [];
  const models: (ModelConfig | undefined)[] = [];
  const stepCount = prng.integer(1, 6);
  for (let i = 0; i < stepCount; i++) {
    const isNested = nested !== undefined && prng.boolean(0.25);
    const taken = isNested ? [prng.pick(tensors)] : pickTogether(tensors, prng);
    const outputCount = isNested ? 1 : prng.integer(1, 2);
    const isDecoupled = isNested ? nested.isDecoupled : prng.boolean(0.25);
    const origin = isDecoupled ? i + 1 : Math.max(...taken.map((tensor) => tensor.origin));
    const given = Array.from({ length: outputCount }, (_, k) => ({ name: `t${i}_${k}`, origin }));
    const inputName = (k: number) => (isNested ? 'IN0' : `X${k}`);
    const outputName = (k: number) => (isNested ? 'OUT0' : `Y${k}`);
    const model_name = isNested ? nested.config.name : `${name}_m${i}`;
    steps.push({
      model_name,
      model_version: -1,
      model_namespace: '',
      input_map: Object.fromEntries(taken.map((tensor, k) => [inputName(k), tensor.name])),
      output_map: Object.fromEntries(given.map((tensor, k) => [outputName(k), tensor.name])),
    });
    models.push(
      isNested
        ? undefined
        : {
            ...EMPTY_CONFIG,
            name: model_name,
            max_batch_size: prng.boolean(0.4) ? 8 : 0,
            input: taken.map((_, k) => ioOf(`X${k}`, true)),
            output: given.map((_, k) => outputOf(`Y${k}`)),
            model_transaction_policy: { decoupled: isDecoupled },
          },
    );
    tensors.push(...given);
  }
  return { config: finish(name, { prng, tensors, inputCount, steps }), models };
}

function finish(
  name: string,
  parts: { prng: Prng; tensors: RandomTensor[]; inputCount: number; steps: EnsembleStep[] },
): ModelConfig {
  const { prng, tensors, inputCount, steps } = parts;
  // The outputs get names of their own, so that an ensemble can be a step of another.
  const shown = pickTogether(tensors.slice(inputCount), prng);
  const renamed = new Map(shown.map((tensor, k) => [tensor.name, `OUT${k}`]));
  const rename = (map: Record<string, string>) =>
    Object.fromEntries(Object.entries(map).map(([key, value]) => [key, renamed.get(value) ?? value]));
  return {
    ...EMPTY_CONFIG,
    name,
    platform: 'ensemble',
    input: tensors.slice(0, inputCount).map((tensor, k) => ioOf(tensor.name, k > 0)),
    output: shown.map((_, k) => outputOf(`OUT${k}`)),
    ensemble_scheduling: {
      step: prng.shuffle(
        steps.map((step) => ({
          ...step,
          input_map: rename(step.input_map),
          output_map: rename(step.output_map),
        })),
      ),
      max_inflight_requests: prng.boolean(0.4) ? prng.integer(1, 4) : 0,
    },
  };
}

/** One to three tensors that a load lets meet: of the request, and of one decoupled step. */
function pickTogether(tensors: readonly RandomTensor[], prng: Prng): RandomTensor[] {
  const first = prng.pick(tensors);
  const taken = new Set([first]);
  let { origin } = first;
  for (let i = prng.integer(0, 2); i > 0; i--) {
    const other = prng.pick(tensors);
    if (origin !== 0 && other.origin !== 0 && other.origin !== origin) continue;
    origin = Math.max(origin, other.origin);
    taken.add(other);
  }
  return [...taken];
}
