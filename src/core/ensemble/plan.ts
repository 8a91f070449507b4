// The data flow of an ensemble as numbers, worked out once at load: which step waits for which tensors, and which pass a
// tensor belongs to. Pure; ensemble-run.ts acts on it.
//
// Every response of a decoupled step begins a pass of its own through the steps after it. A scope is the set of steps and
// tensors that exist once per pass: scope 0 once per request, one further scope for each decoupled step.
//
//      RAW ──▶ repeat (decoupled) ──▶ WORD ──▶ embed ──▶ VECTOR
//      scope 0                        scope 1: once per response of `repeat`

import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import type { ComposingModel } from './check-steps.ts';

export interface PlanTensor {
  readonly name: string;
  readonly scope: number;
  /** Its shapes begin with the batch dimension. */
  readonly isBatched: boolean;
}

/** A place where a tensor is handed over: an input of a step, or an output of the ensemble. */
export interface PlanPort {
  readonly name: string;
  readonly tensor: number;
  /** Config dims of the taker, without the batch dimension. */
  readonly dims: readonly number[];
  readonly isBatching: boolean;
}

export interface PlanStep {
  readonly index: number;
  readonly model: string;
  /** -1 for the newest. */
  readonly version: number;
  readonly isDecoupled: boolean;
  readonly inputs: readonly PlanPort[];
  /** Tensor by the name of the model's output; what is not in it is dropped. */
  readonly outputs: ReadonlyMap<string, number>;
  readonly scope: number;
  /** Of what it writes: its own, or a new one when it is decoupled. */
  readonly outputScope: number;
}

export interface Plan {
  readonly tensors: readonly PlanTensor[];
  readonly steps: readonly PlanStep[];
  /** Tensors by the order of the config's inputs. */
  readonly inputs: readonly number[];
  readonly outputs: readonly PlanPort[];
  readonly scopeCount: number;
  readonly isDecoupled: boolean;
}

/** The config has been validated: every tensor is written once, and nothing waits for itself. */
export function createPlan(config: ModelConfig, models: readonly ComposingModel[]): Plan {
  const builder = new PlanBuilder(config, models);
  const inputs = config.input.map(({ name }) =>
    builder.addTensor(name, { scope: 0, isBatched: config.max_batch_size > 0 }),
  );
  builder.placeSteps();
  const outputs = config.output.map(({ name, dims }) => ({
    name,
    tensor: builder.tensorNamed(name),
    dims,
    isBatching: config.max_batch_size > 0,
  }));
  builder.scopeOf(
    outputs.map(({ tensor }) => tensor),
    config.name,
  );
  const { tensors, steps, scopeCount } = builder;
  return { tensors, steps, inputs, outputs, scopeCount, isDecoupled: scopeCount > 1 };
}

class PlanBuilder {
  readonly #config: ModelConfig;
  readonly #models: readonly ComposingModel[];
  readonly tensors: PlanTensor[] = [];
  readonly #byName = new Map<string, number>();
  readonly steps: PlanStep[] = [];
  scopeCount = 1;

  constructor(config: ModelConfig, models: readonly ComposingModel[]) {
    this.#config = config;
    this.#models = models;
  }

  addTensor(name: string, where: { scope: number; isBatched: boolean }): number {
    const index = this.tensors.push({ name, ...where }) - 1;
    this.#byName.set(name, index);
    return index;
  }

  tensorNamed(name: string): number {
    const index = this.#byName.get(name);
    if (index === undefined) throw new Error(`ensemble tensor '${name}' is written by no step`);
    return index;
  }

  /** Steps may be listed in any order; each is placed once all it takes has been. */
  placeSteps(): void {
    const listed = this.#config.ensemble_scheduling?.step ?? [];
    const waiting = new Set(listed.keys());
    for (let isProgress = true; isProgress && waiting.size > 0; ) {
      isProgress = false;
      for (const i of waiting) {
        if (!Object.values(listed[i]!.input_map).every((name) => this.#byName.has(name))) continue;
        this.#place(i);
        waiting.delete(i);
        isProgress = true;
      }
    }
    this.steps.sort((a, b) => a.index - b.index);
  }

  #place(index: number): void {
    const step = this.#config.ensemble_scheduling!.step[index]!;
    const { config, isDecoupled } = this.#models[index]!;
    const isBatching = config.max_batch_size > 0;
    const inputs = Object.entries(step.input_map).map(([name, tensor]) => ({
      name,
      tensor: this.tensorNamed(tensor),
      dims: config.input.find((input) => input.name === name)?.dims ?? [],
      isBatching,
    }));
    const scope = this.scopeOf(
      inputs.map(({ tensor }) => tensor),
      step.model_name,
    );
    const outputScope = isDecoupled ? this.scopeCount++ : scope;
    const outputs = new Map(
      Object.entries(step.output_map).map(([name, tensor]) => [
        name,
        this.addTensor(tensor, { scope: outputScope, isBatched: isBatching }),
      ]),
    );
    const { model_name: model, model_version: version } = step;
    this.steps.push({ index, model, version, isDecoupled, inputs, outputs, scope, outputScope });
  }

  /** What exists once per request goes with every pass; the passes of two decoupled models do not meet. */
  scopeOf(tensors: readonly number[], model: string): number {
    const scopes = new Set(tensors.map((tensor) => this.tensors[tensor]!.scope));
    scopes.delete(0);
    if (scopes.size > 1) {
      throw invalidArgument(
        `in ensemble ${this.#config.name}, step of model '${model}' receives inputs originated from different decoupled models`,
      );
    }
    const [scope = 0] = scopes;
    return scope;
  }
}

/**
 * The shape in which the taker wants a tensor. Only where one side batches and the other does not it may differ: then a
 * batch of one is added, or taken away.
 */
export function shapeFor(port: PlanPort, shape: readonly number[], isBatched: boolean): readonly number[] {
  if (port.isBatching === isBatched) return shape;
  const isPlain = fits(port.dims, shape);
  if (port.isBatching) return isPlain ? [1, ...shape] : shape;
  return !isPlain && shape[0] === 1 && shape.length === port.dims.length + 1 ? shape.slice(1) : shape;
}

function fits(dims: readonly number[], shape: readonly number[]): boolean {
  return dims.length === shape.length && dims.every((dim, i) => dim === -1 || dim === shape[i]);
}
