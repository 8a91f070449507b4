// A double-ended queue in a ring buffer: O(1) at both ends, no shifting, and slots of removed items are
// cleared so that nothing keeps a request's buffers alive.
//
//   slots: │ 4 │ 5 │ · │ · │ 0 │ 1 │ 2 │ 3 │      capacity is a power of two, so index = (head + i) & mask
//                           ▲ head

const CAPACITY_MIN = 16;

export class Deque<T> {
  #slots: (T | undefined)[] = new Array(CAPACITY_MIN).fill(undefined);
  #mask = CAPACITY_MIN - 1;
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  pushBack(item: T): void {
    if (this.#size === this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[(this.#head + this.#size) & this.#mask] = item;
    this.#size++;
  }

  pushFront(item: T): void {
    if (this.#size === this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#head = (this.#head - 1) & this.#mask;
    this.#slots[this.#head] = item;
    this.#size++;
  }

  popFront(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#size--;
    this.#shrink();
    return item;
  }

  popBack(): T | undefined {
    if (this.#size === 0) return undefined;
    const index = (this.#head + this.#size - 1) & this.#mask;
    const item = this.#slots[index];
    this.#slots[index] = undefined;
    this.#size--;
    this.#shrink();
    return item;
  }

  peekFront(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[this.#head];
  }

  peekBack(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[(this.#head + this.#size - 1) & this.#mask];
  }

  /** The i-th item from the front; undefined outside [0, size). */
  at(i: number): T | undefined {
    return i < 0 || i >= this.#size ? undefined : this.#slots[(this.#head + i) & this.#mask];
  }

  clear(): void {
    this.#slots = new Array(CAPACITY_MIN).fill(undefined);
    this.#mask = CAPACITY_MIN - 1;
    this.#head = 0;
    this.#size = 0;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#size; i++) yield this.#slots[(this.#head + i) & this.#mask]!;
  }

  /** Gives memory back after a burst; at a quarter, so that a size that swings around a limit does not thrash. */
  #shrink(): void {
    const capacity = this.#slots.length;
    if (capacity > CAPACITY_MIN && this.#size <= capacity >> 2) this.#resize(capacity >> 1);
  }

  #resize(capacity: number): void {
    const slots: (T | undefined)[] = new Array(capacity).fill(undefined);
    for (let i = 0; i < this.#size; i++) slots[i] = this.#slots[(this.#head + i) & this.#mask];
    this.#slots = slots;
    this.#mask = capacity - 1;
    this.#head = 0;
  }
}
