// One target of a router while it is loaded: the model that stands behind its name now, its series, and the canary rule
// that watches it. The model is looked up for every request, so that a reload of the target is followed at once.

import type { TensorSpec } from '../../domain/model-view.ts';
import { notFound, StatusError } from '../../domain/status.ts';
import type { ServedModel } from '../model/served-model.ts';
import { type Catalog, LATEST_VERSION } from '../repository/catalog.ts';
import { CanaryWatch } from './canary-watch.ts';
import { seedOf } from './choose-target.ts';
import type { TargetSeries } from './router-metrics.ts';
import type { RoutedModel, TargetPolicy } from './router-policy.ts';

/** A version that no model has. */
const NO_VERSION = -2;

export interface RouterLog {
  warn(text: string): void;
  info(text: string): void;
}

/** The model that a router's config means; undefined while it does not serve. */
export function findRouted(catalog: Catalog, { model, version }: RoutedModel): ServedModel | undefined {
  return catalog.findReady(model, versionOf(catalog, model, version));
}

function versionOf(catalog: Catalog, model: string, version: string): number {
  if (version === '') return LATEST_VERSION;
  if (/^[0-9]+$/.test(version)) return Number(version);
  return catalog.labelsOf(model).get(version) ?? NO_VERSION;
}

/** Why `findRouted` finds nothing. */
function absenceOf(catalog: Catalog, { model, version }: RoutedModel): StatusError {
  try {
    const number = versionOf(catalog, model, version);
    if (number === NO_VERSION && catalog.findLabel(model, version) === undefined) {
      return notFound(`model '${model}' has no version label '${version}'`);
    }
    const { failure } = catalog.find(model, number);
    return failure ?? notFound(`model '${model}' has just been loaded`);
  } catch (thrown) {
    return StatusError.from(thrown);
  }
}

export class RouterTarget {
  readonly policy: TargetPolicy;
  readonly series: TargetSeries;
  readonly seed: number;
  readonly watch: CanaryWatch | undefined;
  /** Where its requests go since a canary rule took its weight away, and why. */
  rollback: { readonly stable: RouterTarget; readonly reason: string } | undefined;
  readonly #catalog: Catalog;
  readonly #log: RouterLog;
  /** A change is logged. Undefined until it was looked at. */
  #isUsable: boolean | undefined;
  #isLooking = false;

  constructor(policy: TargetPolicy, parts: { catalog: Catalog; series: TargetSeries; log: RouterLog }) {
    this.policy = policy;
    this.series = parts.series;
    this.seed = seedOf(policy.name);
    this.watch = policy.canary === undefined ? undefined : new CanaryWatch(policy.canary);
    this.#catalog = parts.catalog;
    this.#log = parts.log;
  }

  get name(): string {
    return this.policy.name;
  }

  /** Undefined when it is not loaded or all of its instances have failed; then its share goes to the others. */
  find(): ServedModel | undefined {
    // It may lead back to its own router, whose failure is asked for right now.
    if (this.#isLooking) return undefined;
    const found = findRouted(this.#catalog, this.policy);
    this.#isLooking = true;
    const failure = found?.failure;
    this.#isLooking = false;
    return failure === undefined ? found : undefined;
  }

  /** As `find`, for a request: the log hears of changes. */
  findForRequest(): ServedModel | undefined {
    const found = this.find();
    const isUsable = found !== undefined;
    if (isUsable !== this.#isUsable) this.#changed(isUsable);
    return found;
  }

  /** Why it cannot be used. */
  absence(): StatusError {
    return absenceOf(this.#catalog, this.policy);
  }

  #changed(isUsable: boolean): void {
    const isFirst = this.#isUsable === undefined;
    this.#isUsable = isUsable;
    if (isUsable && isFirst) return;
    if (isUsable) this.#log.info(`target '${this.name}' takes requests again`);
    else {
      const { message } = this.absence();
      this.#log.warn(`target '${this.name}' gets no requests, its share goes to the others: ${message}`);
    }
  }
}

/** Do both take the same inputs? Then a request that one refuses as wrong is wrong for the other too. */
export function hasSameInputs(a: ServedModel, b: ServedModel): boolean {
  if (a === b) return true;
  const isSame = (one: TensorSpec, other: TensorSpec | undefined): boolean =>
    other !== undefined &&
    one.datatype === other.datatype &&
    one.optional === other.optional &&
    one.dims.length === other.dims.length &&
    one.dims.every((dim, i) => dim === other.dims[i]);
  return (
    a.maxBatchSize === b.maxBatchSize &&
    a.inputs.length === b.inputs.length &&
    a.inputs.every((input) =>
      isSame(
        input,
        b.inputs.find(({ name }) => name === input.name),
      ),
    )
  );
}
