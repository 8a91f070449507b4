// What a canary rule looks at: how many requests of the last seconds failed or were slow, and whether that is too many.
// Counting and deciding only, with the time given; canary-watch.ts feeds it.

export interface CanaryRule {
  /** From 0 to 1; undefined: errors do not matter. */
  readonly errorRateMax: number | undefined;
  /** Undefined: time does not matter. */
  readonly p99MsMax: number | undefined;
  readonly windowMs: number;
  readonly requestsMin: number;
}

export interface WindowCounts {
  requestCount: number;
  errorCount: number;
  /** Took longer than the bound for p99: no quantile has to be estimated to know whether p99 is above it. */
  slowCount: number;
}

/** More than this share of slow requests puts p99 above the bound. */
const SLOW_SHARE_MAX = 0.01;

/** Why the weight has to go, in words; undefined while all is well. */
export function findBreach(counts: Readonly<WindowCounts>, rule: CanaryRule): string | undefined {
  const { requestCount, errorCount, slowCount } = counts;
  if (requestCount < rule.requestsMin || requestCount === 0) return undefined;
  const among = `of ${requestCount} requests in ${rule.windowMs / 1000} s`;
  if (rule.errorRateMax !== undefined && errorCount > rule.errorRateMax * requestCount) {
    const share = percent(errorCount / requestCount);
    return `${errorCount} ${among} failed (${share}), more than ${percent(rule.errorRateMax)}`;
  }
  if (rule.p99MsMax !== undefined && slowCount > SLOW_SHARE_MAX * requestCount) {
    return `${slowCount} ${among} took longer than ${rule.p99MsMax} ms, so p99 is above it`;
  }
  return undefined;
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

/** The window moves in steps of this share of its length. */
const SLICES = 20;

/** Sums over the last `windowMs`, kept in slices so that what is too old leaves together. */
export class CanaryWindow {
  readonly #sliceMs: number;
  readonly #slices: WindowCounts[] = Array.from({ length: SLICES }, newCounts);
  readonly #total = newCounts();
  #slice = Number.NaN;

  constructor(windowMs: number) {
    this.#sliceMs = windowMs / SLICES;
  }

  add(nowMs: number, request: { readonly isError: boolean; readonly isSlow: boolean }): void {
    this.#moveTo(nowMs);
    const slice = this.#slices[this.#slice % SLICES]!;
    for (const counts of [slice, this.#total]) {
      counts.requestCount++;
      if (request.isError) counts.errorCount++;
      if (request.isSlow) counts.slowCount++;
    }
  }

  /** A request that was counted as slow while it was open has failed now. */
  addErrorOnly(nowMs: number): void {
    this.#moveTo(nowMs);
    this.#slices[this.#slice % SLICES]!.errorCount++;
    this.#total.errorCount++;
  }

  counts(nowMs: number): Readonly<WindowCounts> {
    this.#moveTo(nowMs);
    return this.#total;
  }

  #moveTo(nowMs: number): void {
    const now = Math.floor(nowMs / this.#sliceMs);
    if (now === this.#slice) return;
    const first = Number.isNaN(this.#slice) ? now : Math.max(this.#slice + 1, now - SLICES + 1);
    for (let i = first; i <= now; i++) this.#drop(this.#slices[i % SLICES]!);
    this.#slice = now;
  }

  #drop(slice: WindowCounts): void {
    const total = this.#total;
    total.requestCount -= slice.requestCount;
    total.errorCount -= slice.errorCount;
    total.slowCount -= slice.slowCount;
    Object.assign(slice, newCounts());
  }
}

function newCounts(): WindowCounts {
  return { requestCount: 0, errorCount: 0, slowCount: 0 };
}
