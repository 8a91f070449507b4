// Counts what an honest client seldom does, per second: frames that cost work and bring nothing, and streams that
// are opened only to be reset (CVE-2023-44487). Called by Http2Connection while it reads; throws when it is too much.

import { ERROR_CODE } from './frames.ts';
import { Http2Error } from './http2-error.ts';

const SECOND_MS = 1000;
/** PING, SETTINGS, PRIORITY, empty DATA, unknown frames. */
const IDLE_FRAMES_MAX = 1000;
/**
 * Resets beyond the number of calls that were answered in the same second. A call that is opened and reset costs tens
 * of microseconds, so this many are a nuisance and no outage; clients that drop many streams on purpose stay below it.
 */
const RESETS_MAX = 2000;
/** A call that was open longer before its reset has been a call; deadlines and users are slower than this. */
const YOUNG_STREAM_MS = 250;
/** Before it has seen our SETTINGS, a client may open more streams at once than we allow. */
const REFUSED_MAX = 10_000;

export class FloodGuard {
  #nowMs: number;
  #secondStartMs: number;
  #idleFrames = 0;
  #resets = 0;
  #answered = 0;
  #refused = 0;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
    this.#secondStartMs = nowMs;
  }

  /** When the chunk came that is being read. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** With every received chunk. */
  advance(nowMs: number): void {
    this.#nowMs = nowMs;
    if (nowMs - this.#secondStartMs < SECOND_MS) return;
    this.#secondStartMs = nowMs;
    this.#idleFrames = 0;
    this.#resets = 0;
    this.#answered = 0;
    this.#refused = 0;
  }

  countIdleFrame(): void {
    if (++this.#idleFrames > IDLE_FRAMES_MAX) throw tooMany('too many frames without use');
  }

  countAnswer(): void {
    this.#answered++;
  }

  /** By the client, or by us because of what it did. */
  countReset(streamOpenedMs: number): void {
    if (this.#nowMs - streamOpenedMs > YOUNG_STREAM_MS) return;
    if (++this.#resets > RESETS_MAX + this.#answered) throw tooMany('too many resets');
  }

  countRefused(): void {
    if (++this.#refused > REFUSED_MAX) throw tooMany('too many streams');
  }
}

function tooMany(message: string): Http2Error {
  return new Http2Error(ERROR_CODE.enhanceYourCalm, message);
}
