// A shadow of a router: gets copies of requests, whose answers are counted, timed and dropped. A copy shares the tensors
// of its request; how many may be unanswered is bounded, in number and bytes, and what is beyond is dropped and counted.
// Nothing that happens here reaches a client.

import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import { notFound, StatusError } from '../../domain/status.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Catalog } from '../repository/catalog.ts';
import { uniformOf } from './choose-target.ts';
import type { ShadowLoad } from './router-memory.ts';
import type { RouteOutcome, ShadowSeries } from './router-metrics.ts';
import type { ShadowPolicy } from './router-policy.ts';
import { findRouted } from './router-target.ts';
import { isSequence } from './sequence-homes.ts';

export interface ShadowOptions {
  readonly policy: ShadowPolicy;
  readonly series: ShadowSeries;
  readonly catalog: Catalog;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  random(): number;
  /** Shared with the routers before this one. */
  readonly load: ShadowLoad;
}

export class Shadow {
  readonly #options: ShadowOptions;

  constructor(options: ShadowOptions) {
    this.#options = options;
  }

  /** Never throws. */
  offer(request: InferRequest, ancestors: readonly object[]): void {
    const { policy, series, load } = this.#options;
    if (policy.share < 1 && !this.#isSampled(request)) return;
    const byteLength = byteLengthOf(request);
    if (load.count >= policy.requestsMax || load.byteLength + byteLength > policy.bytesMax) {
      series.droppedCount.inc();
      return;
    }
    this.#send(request, byteLength, ancestors);
  }

  /** All of a sequence or nothing of it. */
  #isSampled({ correlationId }: InferRequest): boolean {
    const { policy, random } = this.#options;
    const draw = isSequence(correlationId) ? uniformOf(String(correlationId), 0) : random();
    return draw < policy.share;
  }

  #send(request: InferRequest, byteLength: number, ancestors: readonly object[]): void {
    const { policy, series, catalog, clock, load } = this.#options;
    const startMs = clock.nowMs();
    load.count++;
    load.byteLength += byteLength;
    series.inFlightCount.inc();
    let isEnded = false;
    const end = (outcome: RouteOutcome): void => {
      if (isEnded) return;
      isEnded = true;
      load.count--;
      load.byteLength -= byteLength;
      series.inFlightCount.dec();
      series.outcomes[outcome].inc();
      if (outcome === 'success') series.durationSecs.observe((clock.nowMs() - startMs) / 1000);
    };
    try {
      const model = findRouted(catalog, policy);
      if (model === undefined) throw notFound(`shadow '${policy.name}' is not loaded`);
      model.infer({
        request,
        sink: new DroppingSink(end),
        cancellation: undefined,
        trace: undefined,
        ancestors,
      });
    } catch (thrown) {
      end(StatusError.from(thrown).code === 'INVALID_ARG' ? 'invalid' : 'error');
    }
  }
}

/** Takes everything and keeps nothing. */
class DroppingSink implements ResponseSink {
  readonly #end: (outcome: RouteOutcome) => void;
  #isFailed = false;
  onRoom: (() => void) | undefined;

  constructor(end: (outcome: RouteOutcome) => void) {
    this.#end = end;
  }

  send(): boolean {
    return true;
  }

  sendError(): boolean {
    this.#isFailed = true;
    return true;
  }

  finish(): void {
    this.#end(this.#isFailed ? 'error' : 'success');
  }

  fail(): void {
    this.#end('error');
  }
}

function byteLengthOf(request: InferRequest): number {
  let byteLength = 0;
  for (const input of request.inputs) byteLength += input.byteLength;
  return byteLength;
}
