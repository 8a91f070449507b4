// One canary rule at work: hears of every request of its target, and says once when the weight has to go. Requests that
// hang count as slow as soon as they are late, so that a target which never answers is found out too.

import { type CanaryRule, CanaryWindow, findBreach } from './canary-window.ts';

/** One request, as the watch sees it. */
export interface WatchedRequest {
  readonly startMs: number;
  /** It is in the window already, as a slow one. */
  isLate: boolean;
}

export class CanaryWatch {
  readonly #rule: CanaryRule;
  readonly #window: CanaryWindow;
  /** Not answered and not late, oldest first. */
  readonly #open = new Set<WatchedRequest>();

  constructor(rule: CanaryRule) {
    this.#rule = rule;
    this.#window = new CanaryWindow(rule.windowMs);
  }

  /** Answers why the weight has to go; undefined while all is well. */
  onBegin(request: WatchedRequest, nowMs: number): string | undefined {
    const isNew = this.#countLate(nowMs);
    this.#open.add(request);
    return isNew ? this.#look(nowMs) : undefined;
  }

  /** `isError` undefined: the client has gone, or asked for something wrong; it says nothing about the target. */
  onEnd(request: WatchedRequest, nowMs: number, isError: boolean | undefined): string | undefined {
    this.#countLate(nowMs);
    this.#open.delete(request);
    if (!request.isLate && isError !== undefined) this.#window.add(nowMs, { isError, isSlow: false });
    else if (request.isLate && isError === true) this.#window.addErrorOnly(nowMs);
    return this.#look(nowMs);
  }

  #look(nowMs: number): string | undefined {
    return findBreach(this.#window.counts(nowMs), this.#rule);
  }

  #countLate(nowMs: number): boolean {
    const { p99MsMax } = this.#rule;
    if (p99MsMax === undefined) return false;
    let isAny = false;
    for (const request of this.#open) {
      if (nowMs - request.startMs <= p99MsMax) break;
      this.#open.delete(request);
      request.isLate = true;
      this.#window.add(nowMs, { isError: false, isSlow: true });
      isAny = true;
    }
    return isAny;
  }
}
