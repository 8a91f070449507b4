// What a router knows beyond its config, and a reload of it must not forget: where sequences live, and how many copies its
// shadows have not answered. load-router.ts hands it on from the old router to the new one.

import { SequenceHomes } from './sequence-homes.ts';

/** Copies that a shadow has not answered. */
export interface ShadowLoad {
  count: number;
  byteLength: number;
}

export class RouterMemory {
  readonly homes: SequenceHomes;
  /** By name; few, since names come from configs. */
  readonly #shadowLoads = new Map<string, ShadowLoad>();

  constructor(homes = new SequenceHomes()) {
    this.homes = homes;
  }

  shadowLoad(name: string): ShadowLoad {
    let load = this.#shadowLoads.get(name);
    if (load === undefined) {
      load = { count: 0, byteLength: 0 };
      this.#shadowLoads.set(name, load);
    }
    return load;
  }
}
