// One point while it is measured: which stream asks what next, when the window begins and ends, and the numbers that come
// of it. Used by every load (HTTP, libllama alone, node-llama-cpp), so that all of them are measured alike. Takes the
// time from its caller.
import { OUTPUT_TOKENS, promptOf, suffixOf } from './workload.mjs';

/** A ramp longer than this is a server that hangs. */
const RAMP_MS_MAX = 600_000;

/**
 * Every stream asks again as soon as its answer has ended. The first answers are cut at different lengths, so that
 * afterwards the streams do not march in step; the window opens when each stream has ended its first:
 *
 *   stream 0  |16|----64----|----64----|----64
 *   stream 1  |--32--|----64----|----64----|--
 *   stream 2  |----48----|----64----|----64---
 *   stream 3  |-----64-----|----64----|----64-
 *                          |<--- window --->|
 */
export class Recording {
  #concurrency;
  #scenario;
  #seed;
  #windowMs;
  #requests = [];
  #rampLeft;
  #asked = new Set();
  #beganMs;
  #windowBeganMs;

  constructor({ concurrency, scenario, seed, windowMs, nowMs }) {
    this.#concurrency = concurrency;
    this.#scenario = scenario;
    this.#seed = seed;
    this.#windowMs = windowMs;
    this.#rampLeft = new Set(Array.from({ length: concurrency }, (_, stream) => stream));
    this.#beganMs = nowMs;
  }

  /** The next question of a stream. */
  begin(stream, nowMs) {
    const isFirst = !this.#asked.has(stream);
    this.#asked.add(stream);
    const question = { scenario: this.#scenario, seed: this.#seed, ordinal: this.#requests.length };
    const request = {
      stream,
      outputTokens: isFirst ? Math.ceil((OUTPUT_TOKENS * (stream + 1)) / this.#concurrency) : OUTPUT_TOKENS,
      startedMs: nowMs,
      eventsMs: [],
      tokenCount: undefined,
      get prompt() {
        return promptOf(question);
      },
      get suffix() {
        return suffixOf(question);
      },
    };
    this.#requests.push(request);
    return request;
  }

  /** `tokenCount` as the server says it: an event may bring several tokens, and a token no event. */
  end(request, { nowMs, tokenCount }) {
    if (tokenCount !== request.outputTokens) {
      throw new Error(`asked for ${request.outputTokens} tokens, got ${tokenCount}`);
    }
    request.tokenCount = tokenCount;
    this.#rampLeft.delete(request.stream);
    if (this.#rampLeft.size === 0) this.#windowBeganMs ??= nowMs;
  }

  isOver(nowMs) {
    if (this.#windowBeganMs !== undefined) return nowMs >= this.#windowBeganMs + this.#windowMs;
    if (nowMs > this.#beganMs + RAMP_MS_MAX)
      throw new Error(`no steady state within ${RAMP_MS_MAX / 1000} s`);
    return false;
  }

  get isInWindow() {
    return this.#windowBeganMs !== undefined;
  }

  summarize() {
    const fromMs = this.#windowBeganMs;
    const toMs = fromMs + this.#windowMs;
    const isInside = (ms) => ms >= fromMs && ms < toMs;
    const done = this.#requests.filter((request) => request.tokenCount !== undefined);
    const tokensPerEvent =
      sum(done.map((request) => request.tokenCount)) / sum(done.map((request) => request.eventsMs.length));
    const events = this.#requests.flatMap((request) => request.eventsMs.filter(isInside));
    const firsts = this.#requests.filter(({ eventsMs }) => eventsMs.length > 0 && isInside(eventsMs[0]));
    const gaps = this.#requests.flatMap(({ eventsMs }) =>
      eventsMs.slice(1).flatMap((ms, i) => (isInside(ms) && eventsMs[i] >= fromMs ? [ms - eventsMs[i]] : [])),
    );
    if (gaps.length === 0 || firsts.length === 0) {
      throw new Error('no answer began within the window; --seconds makes it longer');
    }
    const ttfts = firsts.map(({ eventsMs, startedMs }) => eventsMs[0] - startedMs);
    return {
      tokensPerS: (events.length * tokensPerEvent * 1000) / this.#windowMs,
      ttftP50Ms: percentile(ttfts, 50),
      ttftP99Ms: percentile(ttfts, 99),
      gapP50Ms: percentile(gaps, 50),
      gapP99Ms: percentile(gaps, 99),
      requestCount: firsts.length,
      rampMs: fromMs - this.#beganMs,
    };
  }
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** Nearest rank; of few values the 99th percentile is the largest. */
export function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
}
