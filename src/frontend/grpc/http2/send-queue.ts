// DATA of one stream that waits for flow control or the socket. Made by ServerStream when something must wait,
// emptied by SendScheduler.

import type { FrameOutput } from './frame-output.ts';

export class SendQueue {
  #parts: Buffer[] = [];
  /** The first part that is not sent, and how much of it is. */
  #at = 0;
  #offset = 0;
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  push(parts: readonly Buffer[]): void {
    for (const part of parts) {
      if (part.length === 0) continue;
      this.#parts.push(part);
      this.#byteLength += part.length;
    }
  }

  /** Moves the first bytes, at most byteLength, to the payload of a frame. */
  move(byteLength: number, output: FrameOutput): void {
    this.#byteLength -= byteLength;
    let left = byteLength;
    while (left > 0) {
      const part = this.#parts[this.#at]!;
      const end = Math.min(part.length, this.#offset + left);
      output.payload(part, this.#offset, end);
      left -= end - this.#offset;
      this.#offset = end;
      if (end === part.length) this.#dropFirst();
    }
  }

  /** Sent parts are let go at least when they are half of the list. */
  #dropFirst(): void {
    this.#at++;
    this.#offset = 0;
    if (this.#at * 2 < this.#parts.length) return;
    this.#parts.splice(0, this.#at);
    this.#at = 0;
  }
}
