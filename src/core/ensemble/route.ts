// The part of a plan that one set of requested outputs needs, and how often each of its tensors is used, so that a tensor
// is let go after its last use. Pure; made once per set of outputs and kept by ensemble.ts.

import type { Plan, PlanPort } from './plan.ts';

/** A tensor with this many uses stays for the whole pass: how many will take it is not known. */
export const USED_THROUGHOUT = -1;

export interface Route {
  /** By step; undefined when the step need not run. The names of the outputs it is asked for. */
  readonly stepOutputs: readonly (readonly string[] | undefined)[];
  /** By tensor: the steps that wait for it. */
  readonly takers: readonly (readonly number[])[];
  /** By tensor. */
  readonly useCounts: readonly number[];
  readonly isOutput: readonly boolean[];
  readonly outputs: readonly PlanPort[];
  /** A response is made for each pass of this scope. */
  readonly responseScope: number;
  /** By scope: its steps that must run. */
  readonly stepsByScope: readonly (readonly number[])[];
}

/** `requested` are names of outputs; none means all. */
export function createRoute(plan: Plan, requested: readonly string[]): Route {
  const outputs = requested.length === 0 ? plan.outputs : plan.outputs.filter(isIn(requested));
  const writers = writersOf(plan);
  const isOutput = plan.tensors.map(() => false);
  const isNeeded = plan.tensors.map(() => false);
  const isRun = plan.steps.map(() => false);
  const pending = outputs.map(({ tensor }) => tensor);
  for (const tensor of pending) isOutput[tensor] = true;
  for (let tensor = pending.pop(); tensor !== undefined; tensor = pending.pop()) {
    if (isNeeded[tensor]) continue;
    isNeeded[tensor] = true;
    const writer = writers[tensor];
    if (writer === undefined || isRun[writer]) continue;
    isRun[writer] = true;
    pending.push(...plan.steps[writer]!.inputs.map((input) => input.tensor));
  }
  const stepsRun = plan.steps.filter(({ index }) => isRun[index]);
  const responseScope = Math.max(0, ...outputs.map(({ tensor }) => plan.tensors[tensor]!.scope));
  const takers = plan.tensors.map((_, tensor) =>
    stepsRun.filter((step) => step.inputs.some((input) => input.tensor === tensor)).map(({ index }) => index),
  );
  return {
    stepOutputs: plan.steps.map((step) =>
      isRun[step.index]
        ? [...step.outputs].filter(([, tensor]) => isNeeded[tensor]).map(([name]) => name)
        : undefined,
    ),
    takers,
    useCounts: plan.tensors.map(({ scope }, tensor) => {
      const scopes = takers[tensor]!.map((step) => plan.steps[step]!.scope);
      if (isOutput[tensor]) scopes.push(responseScope);
      return scopes.some((other) => other !== scope) ? USED_THROUGHOUT : scopes.length;
    }),
    isOutput,
    outputs,
    responseScope,
    stepsByScope: Array.from({ length: plan.scopeCount }, (_, scope) =>
      stepsRun.filter((step) => step.scope === scope).map(({ index }) => index),
    ),
  };
}

function isIn(names: readonly string[]): (port: PlanPort) => boolean {
  const set = new Set(names);
  return ({ name }) => set.has(name);
}

function writersOf(plan: Plan): (number | undefined)[] {
  const writers: (number | undefined)[] = plan.tensors.map(() => undefined);
  for (const { index, outputs } of plan.steps) for (const tensor of outputs.values()) writers[tensor] = index;
  return writers;
}
