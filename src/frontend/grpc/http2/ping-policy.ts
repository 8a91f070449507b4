// Pings in both directions: which of the client's are too many, as gRPC's C core counts them, and when we send ours.
// Called by Http2Connection with the time; holds no timer.

import { ERROR_CODE } from './frames.ts';
import { Http2Error } from './http2-error.ts';
import type { Http2Options } from './http2-types.ts';

/** Clients that measure bandwidth ping with every answer; without any answer of ours this many a second are a flood. */
const PINGS_PER_SECOND_MAX = 1000;

export class PingPolicy {
  readonly #options: Http2Options;
  #lastPingMs = Number.NEGATIVE_INFINITY;
  #strikes = 0;
  #sentCount = 0;
  #secondStartMs = 0;
  #pingsInSecond = 0;
  #lastReceivedMs: number;
  /** When our ping left that nothing has followed; undefined: none is out. */
  #keepaliveSentMs: number | undefined;

  constructor(options: Http2Options, nowMs: number) {
    this.#options = options;
    this.#lastReceivedMs = nowMs;
  }

  onReceived(nowMs: number): void {
    this.#lastReceivedMs = nowMs;
    this.#keepaliveSentMs = undefined;
  }

  /** `sentCount`: HEADERS and DATA that we have sent; each lets the client start anew. */
  onPing(nowMs: number, { streamCount, sentCount }: { streamCount: number; sentCount: number }): void {
    if (sentCount !== this.#sentCount || nowMs - this.#secondStartMs >= 1000) {
      this.#secondStartMs = nowMs;
      this.#pingsInSecond = 0;
    }
    if (++this.#pingsInSecond > PINGS_PER_SECOND_MAX) throw tooManyPings();
    if (sentCount !== this.#sentCount) {
      this.#sentCount = sentCount;
      this.#strikes = 0;
      this.#lastPingMs = Number.NEGATIVE_INFINITY;
    }
    const isEarly = nowMs - this.#lastPingMs < this.#options.pingIntervalWithoutDataMsMin;
    this.#lastPingMs = nowMs;
    if (!isEarly || streamCount > 0 || this.#options.pingStrikesMax === 0) return;
    if (++this.#strikes > this.#options.pingStrikesMax) throw tooManyPings();
  }

  /** What the silence of the client asks for. */
  keepalive(nowMs: number, streamCount: number): 'wait' | 'ping' | 'close' {
    const { keepaliveTimeMs, keepaliveTimeoutMs, isKeepaliveWithoutCalls } = this.#options;
    if (this.#keepaliveSentMs !== undefined) {
      return nowMs - this.#keepaliveSentMs > keepaliveTimeoutMs ? 'close' : 'wait';
    }
    if (streamCount === 0 && !isKeepaliveWithoutCalls) return 'wait';
    if (nowMs - this.#lastReceivedMs < keepaliveTimeMs) return 'wait';
    this.#keepaliveSentMs = nowMs;
    return 'ping';
  }
}

function tooManyPings(): Http2Error {
  // the text is part of the protocol: clients ping less often when they read it
  return new Http2Error(ERROR_CODE.enhanceYourCalm, 'too_many_pings');
}
