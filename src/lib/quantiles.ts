// Quantiles of a stream over a sliding time window, in bounded memory; for Prometheus summaries. As in
// prometheus-cpp the window is 60 s, here made of five sketches of 12 s each, of which the oldest is cleared
// when its turn comes again.
//
// One sketch counts values in buckets that grow by a constant factor: bucket i holds (γ^(i-1), γ^i]. A value
// read back from it is wrong by at most α = (γ-1)/(γ+1) of itself, whatever the distribution, and adding is
// one logarithm and one increment: no sorting, no allocation, no periodic compression.

/** Relative error α of a value read back. */
const RELATIVE_ERROR = 0.005;
const GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR);
const LOG_GAMMA = Math.log(GAMMA);
/** Values from 1 up to γ^2500 ≈ 7·10^10, in microseconds about 20 hours; above it they count as that. */
const BUCKET_COUNT = 2500;

const WINDOW_SLICES = 5;
export const QUANTILE_WINDOW_MS = 60_000;
const SLICE_MS = QUANTILE_WINDOW_MS / WINDOW_SLICES;

interface Slice {
  /** Which 12 s period these counts belong to. */
  period: number;
  readonly counts: Uint32Array;
  count: number;
}

export class WindowedQuantiles {
  /** Allocated when first used: most summaries of most models never see a value. */
  readonly #slices: (Slice | undefined)[] = new Array(WINDOW_SLICES).fill(undefined);

  /** `value` in any unit in which 1 is small; negative values count as 0. */
  add(value: number, nowMs: number): void {
    const period = Math.floor(nowMs / SLICE_MS);
    const index = period % WINDOW_SLICES;
    let slice = this.#slices[index];
    if (slice === undefined) {
      slice = { period, counts: new Uint32Array(BUCKET_COUNT), count: 0 };
      this.#slices[index] = slice;
    } else if (slice.period !== period) {
      slice.period = period;
      slice.counts.fill(0);
      slice.count = 0;
    }
    const bucket = bucketOf(value);
    slice.counts[bucket] = slice.counts[bucket]! + 1;
    slice.count++;
  }

  /** The values below which the given fractions of the window lie; NaN when the window is empty. */
  read(fractions: readonly number[], nowMs: number): number[] {
    const oldest = Math.floor(nowMs / SLICE_MS) - WINDOW_SLICES + 1;
    const live = this.#slices.filter((s): s is Slice => s !== undefined && s.period >= oldest && s.count > 0);
    let total = 0;
    for (const slice of live) total += slice.count;
    if (total === 0) return fractions.map(() => Number.NaN);
    const merged = new Float64Array(BUCKET_COUNT);
    for (const slice of live) {
      for (let i = 0; i < BUCKET_COUNT; i++) merged[i] = merged[i]! + slice.counts[i]!;
    }
    return fractions.map((fraction) => valueAtRank(merged, Math.max(1, Math.ceil(fraction * total))));
  }
}

function bucketOf(value: number): number {
  // also true for NaN
  if (!(value > 0)) return 0;
  if (value <= 1) return 1;
  const bucket = 1 + Math.ceil(Math.log(value) / LOG_GAMMA);
  return bucket < BUCKET_COUNT ? bucket : BUCKET_COUNT - 1;
}

function valueAtRank(counts: Float64Array, rank: number): number {
  let seen = 0;
  for (let i = 0; i < counts.length; i++) {
    seen += counts[i]!;
    if (seen >= rank) return middleOf(i);
  }
  return middleOf(counts.length - 1);
}

/** The middle of a bucket, in the sense that it is off by at most α at both ends. */
function middleOf(bucket: number): number {
  if (bucket === 0) return 0;
  if (bucket === 1) return 1;
  return (2 * GAMMA ** (bucket - 1)) / (GAMMA + 1);
}
