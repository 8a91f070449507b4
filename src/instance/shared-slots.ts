// Where large payloads cross between server and host without a socket: a file in memory (memory-file.ts), cut into slots of
// one size. Each batch in flight has a slot of its own; the server copies the inputs there, the host copies them out (one in
// Python lends them to its model) and may put the outputs in their place, and the server has copied those out before it gives
// the slot to another batch. So a slot has one writer at any time and nobody needs a lock.

import { internal } from '../domain/status.ts';
import { type LentBytes, payloadPool } from '../lib/chunk-pool.ts';
import { NumberTable } from '../lib/number-table.ts';
import { createMemoryFile, type MemoryFile, mapMemoryFile } from './memory-file.ts';

/** A copy of so much holds the server up for about three milliseconds; a larger payload goes through the socket, turn by turn. */
export const SLOT_BYTES = 24 * 1024 * 1024;

/** So much of each slot is used from the start; most models never need the rest. */
export const SLOT_BYTES_FIRST = 8 * 1024 * 1024;

/** A batch runs and another waits behind it. */
export const SLOT_COUNT = 2;

export interface PlacedPayload {
  readonly pieces: readonly { data: Buffer; offset: number }[];
  readonly payloadBytes: number;
}

/** What a frame says of its slot: numbers from 1, because 0 in a preamble means none. */
export interface FrameSlot {
  readonly number: number;
  /** False when the payload does not fit; it then goes with the frame. */
  write(payload: PlacedPayload): boolean;
}

/** Which batch has which slot; kept by the server. */
export class SlotTable {
  readonly #slots: SharedSlots;
  readonly #free: number[] = [];
  readonly #taken = new NumberTable<number>();

  constructor(slots: SharedSlots) {
    this.#slots = slots;
    for (let number = SLOT_COUNT; number > 0; number--) this.#free.push(number);
  }

  /** Undefined when all are taken: the batch then goes through the socket, both ways. */
  take(batchId: number): FrameSlot | undefined {
    const number = this.#free.pop();
    if (number === undefined) return undefined;
    this.#taken.set(batchId, number);
    return this.#slots.slot(number);
  }

  /** The batch is answered, and its answer has been read. */
  free(batchId: number): void {
    const number = this.#taken.get(batchId);
    if (number === undefined) return;
    this.#taken.delete(batchId);
    this.#free.push(number);
  }
}

export class SharedSlots {
  readonly #file: MemoryFile;
  readonly #slotBytes: number;
  /** What `write` uses of a slot. */
  #usedBytes = SLOT_BYTES_FIRST;
  #growth: Promise<void> | undefined;

  private constructor(file: MemoryFile, slotBytes: number) {
    this.#file = file;
    this.#slotBytes = slotBytes;
  }

  /** For a host that is about to be started; undefined where the system has no such memory. */
  static create(): SharedSlots | undefined {
    const file = createMemoryFile(SLOT_COUNT * SLOT_BYTES);
    return file && new SharedSlots(file, SLOT_BYTES);
  }

  /** What the server shares with this host. */
  static attach(fd: number, slotBytes: number): SharedSlots {
    const file = mapMemoryFile(fd, SLOT_COUNT * slotBytes);
    if (file === undefined)
      throw internal('host protocol: the memory that the server shares could not be mapped');
    return new SharedSlots(file, slotBytes);
  }

  get fd(): number {
    return this.#file.fd;
  }

  slot(number: number): FrameSlot {
    return { number, write: (payload) => this.#write(number, payload) };
  }

  /** The payload in one piece, a copy. */
  read(number: number, payloadBytes: number): Buffer {
    const start = this.#checkedStart(number, payloadBytes);
    const data = Buffer.allocUnsafeSlow(payloadBytes);
    this.#file.bytes.copy(data, 0, start, start + payloadBytes);
    return data;
  }

  /** The same in memory of the pool. */
  readLent(number: number, payloadBytes: number): LentBytes {
    const start = this.#checkedStart(number, payloadBytes);
    const lent = payloadPool.lend();
    lent.write(this.#file.bytes, start, start + payloadBytes);
    return lent;
  }

  /**
   * Lets payloads use whole slots, once the system has made the pages: on a thread of its own, because it takes a
   * millisecond for each megabyte.
   */
  grow(): Promise<void> {
    this.#growth ??= this.#populate();
    return this.#growth;
  }

  async #populate(): Promise<void> {
    await this.#file.populate();
    this.#usedBytes = this.#slotBytes;
  }

  close(): void {
    this.#file.close();
  }

  #checkedStart(number: number, payloadBytes: number): number {
    if (number < 1 || number > SLOT_COUNT || payloadBytes > this.#slotBytes) {
      throw internal(`host protocol: no slot ${number} with ${payloadBytes} bytes`);
    }
    return this.#startOf(number);
  }

  #startOf(number: number): number {
    return (number - 1) * this.#slotBytes;
  }

  #write(number: number, { pieces, payloadBytes }: PlacedPayload): boolean {
    if (payloadBytes > this.#slotBytes) return false;
    if (payloadBytes > this.#usedBytes) {
      void this.grow();
      return false;
    }
    const start = this.#startOf(number);
    for (const { data, offset } of pieces) data.copy(this.#file.bytes, start + offset);
    return true;
  }
}
