// The questions whether a model calls itself ready, and their answers: a model in Python may have an `is_ready` of its own.
// One per host that has; HostProcess asks and hands in the answers. Every question is answered, at the latest by time.

import { READY_CHECK_MS_MAX } from '../domain/limits.ts';
import { encodeControlFrame, FRAME_READY_ASK } from './protocol.ts';

export interface ReadyAskMessage {
  readonly askId: number;
}

export interface ReadyAnswerMessage extends ReadyAskMessage {
  readonly isReady: boolean;
}

export class ReadyChecks {
  readonly #send: (frame: Buffer) => void;
  readonly #open = new Map<number, (isReady: boolean) => void>();
  #lastId = 0;
  /** Questions that come while one is open share its answer: many probes cost the model one call. */
  #pending: Promise<boolean> | undefined;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  ask(): Promise<boolean> {
    this.#pending ??= this.#askNow().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  onAnswer({ askId, isReady }: ReadyAnswerMessage): void {
    this.#open.get(askId)?.(isReady);
  }

  /** The host has ended. */
  close(): void {
    for (const answer of this.#open.values()) answer(false);
  }

  #askNow(): Promise<boolean> {
    const askId = ++this.#lastId;
    return new Promise((resolve) => {
      const timer = setTimeout(() => answer(false), READY_CHECK_MS_MAX);
      const answer = (isReady: boolean): void => {
        clearTimeout(timer);
        this.#open.delete(askId);
        resolve(isReady);
      };
      this.#open.set(askId, answer);
      const message: ReadyAskMessage = { askId };
      this.#send(encodeControlFrame(FRAME_READY_ASK, message));
    });
  }
}
