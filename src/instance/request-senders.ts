// The senders of a host's open requests: how a decoupled model answers many times, and how it hears that the
// client has gone or reads too slowly. Used by host-loop.ts; a sender lives until its final response.

import { setImmediate } from 'node:timers/promises';
import { BY_SENDER, type ExecuteOutput, type ExecuteResult, type ResponseSender } from '../backend/sdk.ts';
import type { StatusError } from '../domain/status.ts';
import { encodePartFrame } from './part-frame.ts';

/** After so many responses a sender lets the event loop turn, so that a pause or a cancellation can be heard. */
const RESPONSES_PER_TURN = 16;

/** The socket to the server, as senders see it. */
export interface SenderSocket {
  write(parts: readonly Buffer[]): void;
  /** Undefined while the socket takes more. */
  whenDrained(): Promise<void> | undefined;
}

export class RequestSenders {
  readonly #socket: SenderSocket;
  readonly #senders = new Map<string, Sender>();

  constructor(socket: SenderSocket) {
    this.#socket = socket;
  }

  /** The same sender each time it is asked for. */
  of(batchId: number, request: number): ResponseSender {
    const key = `${batchId}:${request}`;
    let sender = this.#senders.get(key);
    if (sender === undefined) {
      sender = new Sender({
        emit: (result, isFinal) => {
          if (isFinal) this.#senders.delete(key);
          this.#socket.write(encodePartFrame({ batchId, request, isFinal, result }));
        },
        whenDrained: () => this.#socket.whenDrained(),
      });
      this.#senders.set(key, sender);
    }
    return sender;
  }

  cancel(batchId: number, request: number): void {
    this.#senders.get(`${batchId}:${request}`)?.cancel();
  }

  setPaused(batchId: number, request: number, isPaused: boolean): void {
    this.#senders.get(`${batchId}:${request}`)?.setPaused(isPaused);
  }
}

interface SenderParts {
  emit(result: ExecuteResult, isFinal: boolean): void;
  whenDrained(): Promise<void> | undefined;
}

class Sender implements ResponseSender {
  readonly #parts: SenderParts;
  #sentCount = 0;
  #isFinished = false;
  #isCancelled = false;
  #isPaused = false;
  #waiting: (() => void)[] = [];

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get hasRoom(): boolean {
    return !this.#isPaused && this.#parts.whenDrained() === undefined;
  }

  async whenRoom(): Promise<void> {
    await this.#parts.whenDrained();
    if (this.#sentCount % RESPONSES_PER_TURN === 0) await setImmediate();
    if (this.#isPaused) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  send(response: readonly ExecuteOutput[] | StatusError, isFinal: boolean): void {
    if (this.#isFinished) throw new Error('a response was sent after the final one');
    this.#isFinished = isFinal;
    this.#sentCount++;
    this.#parts.emit(response, isFinal);
  }

  finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    this.#parts.emit(BY_SENDER, true);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.setPaused(false);
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused && !this.#isCancelled;
    if (this.#isPaused) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
