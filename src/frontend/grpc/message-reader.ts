// gRPC's length-prefixed messages out of the DATA of a stream: u8 compressed │ u32 big-endian length │ bytes. A
// message is the pieces in which it came, in the common case one; a large one may be copied, to memory that its
// handler gives back (large-messages.ts). Used by grpc-call.ts.

import { GRPC_MESSAGE_BYTES_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import { CHUNK_BYTES, type Lease, type LentBytes } from '../../lib/chunk-pool.ts';

/** Before every message, both ways. */
export const PREFIX_BYTES = 5;

export interface ReceivedMessage {
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;
  readonly isCompressed: boolean;
  /** Only of messages in memory of the pool. */
  readonly lease: Lease | undefined;
}

/** An object and no function: a closure for each call was seen to keep its message alive until the whole heap was marked. */
export interface MessageLender {
  /** Asked once for each large message. Undefined: it stays in the pieces in which it comes. */
  lend(byteLength: number): LentBytes | undefined;
}

/** A client that only says that its message is large gets no chunk for it. */
const LENT_BYTES_MIN = 4 * 1024;

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
  #lent: LentBytes | undefined;
  #isLendingDue = false;
  /** Set where leases are released. */
  lender: MessageLender | undefined;

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
        this.#missing -= take;
        if (this.#lent !== undefined) this.#lent.write(data, at, at + take);
        else this.#add(data.subarray(at, at + take));
        at += take;
      }
      if (this.#isInMessage && this.#missing === 0) this.#finish();
    }
  }

  #add(piece: Buffer): void {
    this.#pieces.push(piece);
    if (!this.#isLendingDue || this.#byteLength - this.#missing < LENT_BYTES_MIN) return;
    this.#isLendingDue = false;
    this.#lent = this.lender!.lend(this.#byteLength);
    if (this.#lent === undefined) return;
    for (const early of this.#pieces) this.#lent.write(early, 0, early.length);
    this.#pieces = [];
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
    this.#isLendingDue = this.lender !== undefined && byteLength > CHUNK_BYTES && flag === 0;
  }

  #finish(): void {
    const lease = this.#lent;
    const pieces = lease === undefined ? this.#pieces : lease.views();
    this.#lent = undefined;
    this.#pieces = [];
    this.#isInMessage = false;
    this.#onMessage({ pieces, byteLength: this.#byteLength, isCompressed: this.#prefix[0] === 1, lease });
  }
}
