// The Prometheus series of a router: requests, time and weight of every target, and the same for shadows. Obtained
// together at load, released together at unload; a reload of the router counts on.

import type { CounterSeries, GaugeSeries, HistogramSeries } from '../stats/metric-series.ts';
import type { Handle, LabelRecord, MetricsRegistry, ReleaseSeries } from '../stats/metrics-registry.ts';

/** `invalid` is a request that was wrong in itself; `cancelled` one whose client had gone. */
export type RouteOutcome = 'success' | 'error' | 'invalid' | 'cancelled';

export interface RouteSeries {
  readonly outcomes: Readonly<Record<RouteOutcome, CounterSeries>>;
  readonly durationSecs: HistogramSeries;
}

export interface TargetSeries extends RouteSeries {
  readonly weight: GaugeSeries;
  readonly isReady: GaugeSeries;
  readonly rollbackCount: CounterSeries;
}

export interface ShadowSeries extends RouteSeries {
  readonly droppedCount: CounterSeries;
  readonly inFlightCount: GaugeSeries;
}

/** Seconds: from half a millisecond, below which the network dominates, to a minute, where clients give up. */
const DURATION_BOUNDS_SECS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

export class RouterMetrics {
  readonly #registry: MetricsRegistry;
  readonly #router: string;
  readonly #releases: ReleaseSeries[] = [];

  constructor(registry: MetricsRegistry, router: string) {
    this.#registry = registry;
    this.#router = router;
  }

  target(target: string): TargetSeries {
    const labels = { router: this.#router, target };
    const registry = this.#registry;
    const rollbacks = 'Number of times a canary rule took the weight of a target away';
    return {
      ...this.#route('nereid_router', labels),
      weight: this.#held(
        registry.gauge('nereid_router_target_weight', 'Weight of a target as it counts now', labels),
      ),
      isReady: this.#held(
        registry.gauge('nereid_router_target_ready', '1 when a target can take requests, else 0', labels),
      ),
      rollbackCount: this.#held(registry.counter('nereid_router_rollbacks_total', rollbacks, labels)),
    };
  }

  shadow(shadow: string): ShadowSeries {
    const labels = { router: this.#router, shadow };
    const registry = this.#registry;
    const dropped = 'Number of copies that a shadow was not given, because too many were in flight';
    const inFlight = 'Number of copies that a shadow has not answered';
    return {
      ...this.#route('nereid_router_shadow', labels),
      droppedCount: this.#held(registry.counter('nereid_router_shadow_dropped_total', dropped, labels)),
      inFlightCount: this.#held(registry.gauge('nereid_router_shadow_in_flight', inFlight, labels)),
    };
  }

  /** `refresh` runs before every scrape. */
  beforeScrape(refresh: () => void): void {
    this.#releases.push(this.#registry.addCollector(refresh));
  }

  release(): void {
    for (const release of this.#releases) release();
  }

  #route(prefix: string, labels: LabelRecord): RouteSeries {
    const help = 'Number of requests sent to a target or shadow, by how they ended';
    const outcome = (outcome: RouteOutcome) =>
      this.#held(this.#registry.counter(`${prefix}_requests_total`, help, { ...labels, outcome }));
    return {
      outcomes: {
        success: outcome('success'),
        error: outcome('error'),
        invalid: outcome('invalid'),
        cancelled: outcome('cancelled'),
      },
      durationSecs: this.#held(
        this.#registry.histogram(
          `${prefix}_request_duration_seconds`,
          'Time of successful requests from their arrival at the router to their last response, in seconds',
          labels,
          DURATION_BOUNDS_SECS,
        ),
      ),
    };
  }

  #held<S>(handle: Handle<S>): S {
    this.#releases.push(handle.release);
    return handle.series;
  }
}
