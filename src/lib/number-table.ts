// A Map with whole numbers as keys, for what comes and goes with every request. A Map makes itself a new table every few dozen
// insertions, and V8 leaves in the old table a pointer to the new one. Once one of them is old enough to be left alone by the
// collections of young objects, it keeps all that follow, with every request in them: such a collection then
// takes milliseconds in place of tenths. Here a slot is cleared and used again.
//
//   slots: │ 34 │ · │ 18 │ 2 │ · │ …     open addressing: a number is at its place, or after others that were there first

const CAPACITY_MIN = 16;
const EMPTY = -1;
/** 2^32 divided by the golden ratio: neighbours go far from each other. */
const SPREAD = 0x9e3779b1;

export class NumberTable<T> {
  #keys = emptyKeys(CAPACITY_MIN);
  #values: (T | undefined)[] = emptyValues(CAPACITY_MIN);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** `key` is a whole number from 0 on. */
  get(key: number): T | undefined {
    return this.#values[this.#slotOf(key)];
  }

  has(key: number): boolean {
    return this.#keys[this.#slotOf(key)] === key;
  }

  set(key: number, value: T): void {
    let slot = this.#slotOf(key);
    if (this.#keys[slot] !== key) {
      if ((this.#size + 1) * 2 > this.#keys.length) {
        this.#resize(this.#keys.length * 2);
        slot = this.#slotOf(key);
      }
      this.#keys[slot] = key;
      this.#size++;
    }
    this.#values[slot] = value;
  }

  /** Whether it was there. */
  delete(key: number): boolean {
    const slot = this.#slotOf(key);
    if (this.#keys[slot] !== key) return false;
    this.#empty(slot);
    this.#size--;
    const capacity = this.#keys.length;
    // At an eighth, so that a size that swings around a limit does not thrash.
    if (capacity > CAPACITY_MIN && this.#size <= capacity >> 3) this.#resize(capacity >> 1);
    return true;
  }

  clear(): void {
    this.#keys = emptyKeys(CAPACITY_MIN);
    this.#values = emptyValues(CAPACITY_MIN);
    this.#size = 0;
  }

  /** Those that are there now, in the order of their keys. */
  values(): T[] {
    return [...this.#keys.filter((key) => key !== EMPTY).sort()].map((key) => this.get(key)!);
  }

  /** Where the key is, or where it would be put. */
  #slotOf(key: number): number {
    const mask = this.#keys.length - 1;
    let slot = this.#placeOf(key);
    while (this.#keys[slot] !== key && this.#keys[slot] !== EMPTY) slot = (slot + 1) & mask;
    return slot;
  }

  #placeOf(key: number): number {
    return (Math.imul(key, SPREAD) >>> 8) & (this.#keys.length - 1);
  }

  /** What stands after the slot moves up where that brings it nearer to its place, so that nothing is lost behind a gap. */
  #empty(slot: number): void {
    const mask = this.#keys.length - 1;
    let gap = slot;
    for (let at = (slot + 1) & mask; this.#keys[at] !== EMPTY; at = (at + 1) & mask) {
      const distance = (at - this.#placeOf(this.#keys[at]!)) & mask;
      if (distance < ((at - gap) & mask)) continue;
      this.#keys[gap] = this.#keys[at]!;
      this.#values[gap] = this.#values[at];
      gap = at;
    }
    this.#keys[gap] = EMPTY;
    this.#values[gap] = undefined;
  }

  #resize(capacity: number): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = emptyKeys(capacity);
    this.#values = emptyValues(capacity);
    keys.forEach((key, slot) => {
      if (key === EMPTY) return;
      const target = this.#slotOf(key);
      this.#keys[target] = key;
      this.#values[target] = values[slot];
    });
  }
}

/** Doubles: ids grow beyond 2^31 in a server that runs for long. */
function emptyKeys(capacity: number): Float64Array {
  return new Float64Array(capacity).fill(EMPTY);
}

function emptyValues<T>(capacity: number): (T | undefined)[] {
  return new Array<T | undefined>(capacity).fill(undefined);
}
