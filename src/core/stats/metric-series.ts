// The four kinds of series. A handle is obtained once, at load; what the hot path calls on it neither
// allocates nor looks anything up.

import type { Clock } from '../../lib/clock.ts';
import { WindowedQuantiles } from '../../lib/quantiles.ts';

export class CounterSeries {
  value = 0;

  inc(amount = 1): void {
    this.value += amount;
  }
}

export class GaugeSeries {
  value = 0;

  set(value: number): void {
    this.value = value;
  }

  inc(amount = 1): void {
    this.value += amount;
  }

  dec(amount = 1): void {
    this.value -= amount;
  }
}

export class HistogramSeries {
  readonly bounds: Float64Array;
  /** One per bound and one for what is above all; not cumulative, so that one increment is enough. */
  readonly #counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = Float64Array.from(bounds).sort();
    this.#counts = new Float64Array(this.bounds.length + 1);
  }

  /** `count`: as if it were called so often. */
  observe(value: number, count = 1): void {
    const bounds = this.bounds;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (value <= bounds[middle]!) high = middle;
      else low = middle + 1;
    }
    this.#counts[low] = this.#counts[low]! + count;
    this.sum += value * count;
  }

  /** Cumulative, +Inf last. */
  buckets(): { bound: number; count: number }[] {
    let total = 0;
    return Array.from(this.#counts, (count, i) => {
      total += count;
      return { bound: i < this.bounds.length ? this.bounds[i]! : Number.POSITIVE_INFINITY, count: total };
    });
  }
}

export class SummarySeries {
  readonly quantiles: readonly number[];
  readonly #clock: Clock;
  readonly #window = new WindowedQuantiles();
  sum = 0;
  count = 0;

  constructor(quantiles: readonly number[], clock: Clock) {
    this.quantiles = quantiles;
    this.#clock = clock;
  }

  observe(value: number): void {
    this.#window.add(value, this.#clock.nowMs());
    this.sum += value;
    this.count++;
  }

  /** Over the last minute; NaN when nothing was observed in it. */
  read(): { quantile: number; value: number }[] {
    const values = this.#window.read(this.quantiles, this.#clock.nowMs());
    return this.quantiles.map((quantile, i) => ({ quantile, value: values[i]! }));
  }
}
