// gRPC's length-prefixed messages out of the DATA of a stream: u8 compressed │ u32 big-endian length │ bytes. Nothing
// is copied: a message is the pieces in which it came, in the common case one. Used by grpc-call.ts.

import { GRPC_MESSAGE_BYTES_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';

/** Before every message, both ways. */
export const PREFIX_BYTES = 5;

export interface ReceivedMessage {
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;
  readonly isCompressed: boolean;
}

export class MessageTooLarge extends Error {
  constructor(byteLength: number) {
    super(`Received message larger than max (${byteLength} vs. ${GRPC_MESSAGE_BYTES_MAX})`);
  }
}

export class MessageReader {
  readonly #onMessage: (message: ReceivedMessage) => void;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  #pieces: Buffer[] = [];
  #missing = 0;
  #byteLength = 0;
  #isInMessage = false;

  constructor(onMessage: (message: ReceivedMessage) => void) {
    this.#onMessage = onMessage;
  }

  /** Throws MessageTooLarge before memory is taken for it, and when what comes is no message. */
  push(data: Buffer): void {
    let at = 0;
    while (at < data.length) {
      if (!this.#isInMessage) at = this.#readPrefix(data, at);
      else {
        const take = Math.min(this.#missing, data.length - at);
        this.#pieces.push(data.subarray(at, at + take));
        this.#missing -= take;
        at += take;
      }
      if (this.#isInMessage && this.#missing === 0) this.#finish();
    }
  }

  #readPrefix(data: Buffer, start: number): number {
    let at = start;
    if (this.#prefixBytes === 0 && data.length - at >= PREFIX_BYTES) {
      this.#begin(data, at);
      return at + PREFIX_BYTES;
    }
    while (at < data.length && this.#prefixBytes < PREFIX_BYTES) {
      this.#prefix[this.#prefixBytes++] = data[at++]!;
    }
    if (this.#prefixBytes === PREFIX_BYTES) this.#begin(this.#prefix, 0);
    return at;
  }

  #begin(source: Buffer, at: number): void {
    const flag = source[at]!;
    if (flag > 1) throw internal(`Bad GRPC frame type 0x${flag.toString(16).padStart(2, '0')}`);
    const byteLength = source.readUInt32BE(at + 1);
    if (byteLength > GRPC_MESSAGE_BYTES_MAX) throw new MessageTooLarge(byteLength);
    this.#prefix[0] = flag;
    this.#prefixBytes = 0;
    this.#byteLength = byteLength;
    this.#missing = byteLength;
    this.#isInMessage = true;
  }

  #finish(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#isInMessage = false;
    this.#onMessage({ pieces, byteLength: this.#byteLength, isCompressed: this.#prefix[0] === 1 });
  }
}
