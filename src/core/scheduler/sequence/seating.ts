// Who sits where: brings the sequences and the slots of a model together. A slot that becomes free goes to the sequence that has
// waited longest; a sequence leaves its slot once it takes no more requests and has given its last one away.

import type { Lane } from './lane.ts';
import type { Sequence } from './sequence.ts';
import { SequenceTable } from './sequence-table.ts';
import { SlotTable } from './slot-table.ts';

export class Seating {
  readonly sequences: SequenceTable;
  readonly #slots: SlotTable;

  constructor(options: { idleMs: number; lanes: readonly Lane[] }) {
    this.sequences = new SequenceTable(options);
    this.#slots = new SlotTable(options.lanes);
  }

  /** Gives free slots to the backlog. */
  fill(nowMs: number): void {
    for (;;) {
      const sequence = this.sequences.firstOfBacklog();
      const slot = sequence === undefined ? undefined : this.#slots.lowestFree();
      if (sequence === undefined || slot === undefined) return;
      this.sequences.leaveBacklog(sequence);
      slot.sequence = sequence;
      sequence.slot = slot;
      this.sequences.touch(sequence, nowMs);
      slot.lane.onSlotChange(slot, nowMs);
    }
  }

  /** It takes no more requests; those it has are still executed. */
  close(sequence: Sequence): void {
    this.sequences.close(sequence);
    this.leaveIfOver(sequence);
  }

  leaveIfOver(sequence: Sequence): void {
    if (sequence.isClosed && sequence.waiting.isEmpty) this.leave(sequence);
  }

  /** What it has in flight stays in the slot until it is done. */
  leave(sequence: Sequence): void {
    const { slot } = sequence;
    if (slot === undefined) this.sequences.leaveBacklog(sequence);
    else if (slot.sequence === sequence) this.#slots.free(slot);
  }
}
