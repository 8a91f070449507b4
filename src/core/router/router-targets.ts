// The targets of a router together: which of them a request goes to, what they say where the router's own config says
// nothing, and what has become of their weights. Owned by router-model.ts.

import type { InferRequest } from '../../domain/request.ts';
import { invalidArgument, type StatusError, unavailable } from '../../domain/status.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import { chooseByChance, chooseByKey } from './choose-target.ts';
import type { RouterPolicy } from './router-policy.ts';
import type { RouterTarget } from './router-target.ts';
import { isSequence } from './sequence-homes.ts';
import { weightNow } from './shown-config.ts';

export interface RouterTargetsOptions {
  readonly routerName: string;
  readonly policy: RouterPolicy;
  readonly targets: readonly RouterTarget[];
  /** Uniform in [0, 1). */
  random(): number;
}

export class RouterTargets {
  #isTelling = false;
  readonly all: readonly RouterTarget[];
  readonly #options: RouterTargetsOptions;
  readonly #byName: ReadonlyMap<string, RouterTarget>;
  readonly #seeds: readonly number[];
  #isLooking = false;

  constructor(options: RouterTargetsOptions) {
    this.#options = options;
    this.all = options.targets;
    this.#byName = new Map(this.all.map((target) => [target.name, target]));
    this.#seeds = this.all.map((target) => target.seed);
    this.#showWeights();
  }

  named(name: string): RouterTarget | undefined {
    return this.#byName.get(name);
  }

  /** The one that a header asks for; undefined when none does. */
  forced({ headers }: InferCall): RouterTarget | undefined {
    const { policy, routerName } = this.#options;
    if (policy.forceHeader === undefined) return undefined;
    const name = headers?.get(policy.forceHeader);
    if (name === undefined) return undefined;
    const target = this.#byName.get(name);
    if (target !== undefined) return target;
    const names = this.all.map((known) => `'${known.name}'`).join(', ');
    throw invalidArgument(`router '${routerName}' has no target '${name}'; its targets are ${names}`);
  }

  /** By key where the request has one, else by chance. */
  choose(call: InferCall): RouterTarget {
    const weights = this.#usableWeights();
    const key = this.#keyOf(call.request, call.headers);
    const index =
      key === undefined
        ? chooseByChance(weights, this.#options.random())
        : chooseByKey(weights, this.#seeds, key);
    const chosen = this.all[index];
    if (chosen === undefined) throw this.absence();
    return chosen.rollback?.stable ?? chosen;
  }

  /** Undefined: nothing ties this request to others. */
  #keyOf(request: InferRequest, headers: InferCall['headers']): string | undefined {
    const { sticky } = this.#options.policy;
    if (sticky?.by === 'header') return headers?.get(sticky.name);
    if (sticky?.by === 'parameter') {
      const value = request.parameters?.get(sticky.name);
      return value === undefined ? undefined : String(value);
    }
    const { correlationId } = request;
    return sticky !== undefined && isSequence(correlationId) ? String(correlationId) : undefined;
  }

  /**
   * In the order of the targets; 0 for one whose requests cannot be served now. A target that was rolled back keeps its
   * place in the draw and only its winners go elsewhere: keys of all other targets stay where they are.
   */
  #usableWeights(): number[] {
    return this.all.map((target) => {
      if (target.policy.weight === 0) return 0;
      const goal = target.rollback?.stable ?? target;
      return goal.findForRequest() === undefined ? 0 : target.policy.weight;
    });
  }

  /** Why no request can be served. */
  absence(): StatusError {
    const { routerName } = this.#options;
    // Routers may lead to each other: each tells its reasons once.
    if (this.#isTelling) return unavailable(`router '${routerName}' leads back to itself`);
    this.#isTelling = true;
    try {
      const reasons = this.#goals().map((goal) => `'${goal.name}': ${goal.absence().message}`);
      return unavailable(`no target of router '${routerName}' can take requests: ${reasons.join('; ')}`);
    } finally {
      this.#isTelling = false;
    }
  }

  /** Where requests go that are neither forced nor part of a sequence. */
  #goals(): RouterTarget[] {
    const weighty = this.all.filter(({ policy }) => policy.weight > 0);
    return [...new Set(weighty.map((target) => target.rollback?.stable ?? target))];
  }

  get canServe(): boolean {
    return this.#look(() => this.#goals().some((goal) => goal.find() !== undefined), false);
  }

  get isHealthy(): boolean {
    return this.#look(() => this.#goals().some((goal) => goal.find()?.isHealthy === true), false);
  }

  /** What the first target that serves says. */
  ofFirst<T>(read: (model: ServedModel) => T, otherwise: T): T {
    return this.#look(() => {
      for (const target of this.all) {
        const model = target.find();
        if (model !== undefined) return read(model);
      }
      return otherwise;
    }, otherwise);
  }

  /** Targets may lead back to this router, which then has nothing to say of itself. */
  #look<T>(act: () => T, otherwise: T): T {
    if (this.#isLooking) return otherwise;
    this.#isLooking = true;
    try {
      return act();
    } finally {
      this.#isLooking = false;
    }
  }

  get hasRollback(): boolean {
    return this.all.some((target) => target.rollback !== undefined);
  }

  /** The target that takes over; undefined when that was done before. */
  rollBack(target: RouterTarget, reason: string): RouterTarget | undefined {
    const stable = this.#byName.get(target.policy.canary?.stable ?? '');
    if (target.rollback !== undefined || stable === undefined) return undefined;
    target.rollback = { stable, reason };
    target.series.rollbackCount.inc();
    this.#showWeights();
    return stable;
  }

  #showWeights(): void {
    for (const target of this.all) target.series.weight.set(weightNow(target, this.all));
  }
}
