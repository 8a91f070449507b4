// The slots of all instances of a model, and which of them are free. A new sequence takes the lowest number, so that slot 0 of
// every instance is used before slot 1 of any.

import type { Lane } from './lane.ts';
import type { Slot } from './sequence.ts';

export class SlotTable {
  readonly lanes: readonly Lane[];
  /** Per lane: no slot below this number is free. */
  readonly #lowest: Map<Lane, number>;

  constructor(lanes: readonly Lane[]) {
    this.lanes = lanes;
    this.#lowest = new Map(lanes.map((lane) => [lane, 0]));
  }

  /** Only of instances that are ready: a sequence that can still choose does not wait for a host. */
  lowestFree(): Slot | undefined {
    let lowest: Slot | undefined;
    for (const lane of this.lanes) {
      if (lane.instance.state !== 'ready') continue;
      const slot = this.#lowestFreeOf(lane);
      if (slot !== undefined && (lowest === undefined || slot.number < lowest.number)) lowest = slot;
    }
    return lowest;
  }

  #lowestFreeOf(lane: Lane): Slot | undefined {
    const { slots } = lane;
    let number = this.#lowest.get(lane)!;
    while (number < slots.length && slots[number]!.sequence !== undefined) number++;
    this.#lowest.set(lane, number);
    return slots[number];
  }

  /** The sequence has left; what it has in flight stays until it is done. */
  free(slot: Slot): void {
    slot.sequence = undefined;
    if (slot.number < this.#lowest.get(slot.lane)!) this.#lowest.set(slot.lane, slot.number);
  }
}
