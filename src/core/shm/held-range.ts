// A range of a region, from the check of the request to its last answer. Made by SharedMemory.hold; a request copies
// its tensors through it.

import type { MemoryRange } from '../../domain/memory-range.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import type { Region } from './region.ts';
import type { SharedMemory } from './shared-memory.ts';

export class HeldRange {
  readonly #memory: SharedMemory;
  readonly #region: Region;
  readonly #position: number;
  readonly byteSize: number;
  #isReleased = false;

  constructor(memory: SharedMemory, region: Region, range: MemoryRange) {
    this.#memory = memory;
    this.#region = region;
    const start = region.kind === 'system' ? region.status.offset : 0;
    this.#position = start + Number(range.offset);
    this.byteSize = Number(range.byteSize);
  }

  /** A copy of that size is synchronous. */
  isInline(byteLength: number): boolean {
    return this.#region.memory.isInline(byteLength);
  }

  read(): TensorBytes | Promise<TensorBytes> {
    const span = { position: this.#position, byteLength: this.byteSize };
    if (this.isInline(span.byteLength)) return this.#region.memory.read(span);
    return this.#memory.readHeld(this.#region, span);
  }

  /** From the start of the range; the caller has compared the sizes. */
  write(data: TensorBytes, byteLength: number): void | Promise<void> {
    const span = { position: this.#position, byteLength };
    if (this.isInline(byteLength)) return this.#region.memory.write(span, data);
    return this.#memory.writeHeld(this.#region, span, data);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#memory.releaseHeld(this.#region);
  }
}
