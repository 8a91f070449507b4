// One step of the sampler pool as it lies in the memory that the main thread and the workers share. sampler-pool.ts writes
// the rows, sampler-pool-worker.ts the tokens. No message is sent in a step:
//
//   words: │ pending │ failed │ stopped │ rows │ logits: address (2) │ outputs │ wake: one per worker │ rows … │
//   row:   │ worker │ sampler │ output │ token │

import type { SamplerSettings } from './token-sampler.ts';

export const WORKERS_MAX = 64;
const PENDING = 0;
const FAILED = 1;
const STOPPED = 2;
const ROW_COUNT = 3;
const ADDRESS = 4;
const OUTPUT_COUNT = 6;
const WAKE = 7;
const ROWS = WAKE + WORKERS_MAX;
const ROW_WORDS = 4;

/** What a sampler is made of, so that one on another thread draws the same. */
export interface SamplerSpec {
  readonly settings: SamplerSettings;
  readonly prompt: readonly number[];
  readonly seed: number;
}

/** Sent when a request begins and ends; a worker reads them before its next rows. */
export type SamplerMessage =
  | { readonly kind: 'begin'; readonly id: number; readonly spec: SamplerSpec }
  | { readonly kind: 'end'; readonly id: number };

/** What a worker says of itself; `failed` ends it. */
export type SamplerReport = { readonly kind: 'ready' } | { readonly kind: 'failed'; readonly reason: string };

export interface SamplerRow {
  readonly worker: number;
  readonly id: number;
  readonly output: number;
}

export class SamplerStep {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #address: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
    this.#address = new BigInt64Array(buffer, ADDRESS * 4, 1);
  }

  static create(rowsMax: number): SamplerStep {
    return new SamplerStep(new SharedArrayBuffer((ROWS + rowsMax * ROW_WORDS) * 4));
  }

  get rowsMax(): number {
    return (this.#words.length - ROWS) / ROW_WORDS;
  }

  get rowCount(): number {
    return this.#words[ROW_COUNT]!;
  }

  get logits(): { readonly address: bigint; readonly outputCount: number } {
    return { address: this.#address[0]!, outputCount: this.#words[OUTPUT_COUNT]! };
  }

  get isFailed(): boolean {
    return Atomics.load(this.#words, FAILED) === 1;
  }

  get isStopped(): boolean {
    return Atomics.load(this.#words, STOPPED) === 1;
  }

  get isDone(): boolean {
    return Atomics.load(this.#words, PENDING) === 0;
  }

  /** Only between two steps. */
  setRows(rows: readonly SamplerRow[], logits: { address: bigint; outputCount: number }): void {
    rows.forEach(({ worker, id, output }, i) => {
      this.#words.set([worker, id, output, -1], ROWS + i * ROW_WORDS);
    });
    this.#words[ROW_COUNT] = rows.length;
    this.#address[0] = logits.address;
    this.#words[OUTPUT_COUNT] = logits.outputCount;
  }

  row(index: number): SamplerRow {
    const at = ROWS + index * ROW_WORDS;
    return { worker: this.#words[at]!, id: this.#words[at + 1]!, output: this.#words[at + 2]! };
  }

  tokenOf(row: number): number {
    return this.#words[ROWS + row * ROW_WORDS + 3]!;
  }

  setToken(row: number, token: number): void {
    this.#words[ROWS + row * ROW_WORDS + 3] = token;
  }

  wake(workers: ReadonlySet<number>): void {
    Atomics.store(this.#words, PENDING, workers.size);
    for (const worker of workers) this.#wakeOne(worker);
  }

  stop(workerCount: number): void {
    Atomics.store(this.#words, STOPPED, 1);
    for (let worker = 0; worker < workerCount; worker++) this.#wakeOne(worker);
  }

  /** For a worker: how often it was woken, once that is no longer `seen`. Blocks its thread. */
  waitForWake(worker: number, seen: number): number {
    for (;;) {
      const wakes = Atomics.load(this.#words, WAKE + worker);
      if (wakes !== seen) return wakes;
      // Also ends without a new wake: `notify` may come when the wake that it belongs to has long been seen and served.
      Atomics.wait(this.#words, WAKE + worker, seen);
    }
  }

  /** For a worker, once per wake. */
  reportDone(isFailed: boolean): void {
    if (isFailed) Atomics.store(this.#words, FAILED, 1);
    if (Atomics.sub(this.#words, PENDING, 1) === 1) Atomics.notify(this.#words, PENDING);
  }

  /** For the main thread, which has nothing else to do then: true when all workers are done. */
  waitUntilDone(timeoutMs: number): boolean {
    for (let i = 0; i < SPINS; i++) if (this.isDone) return true;
    const endMs = performance.now() + timeoutMs;
    for (;;) {
      const pending = Atomics.load(this.#words, PENDING);
      if (pending === 0) return true;
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return false;
      Atomics.wait(this.#words, PENDING, pending, leftMs);
    }
  }

  #wakeOne(worker: number): void {
    Atomics.add(this.#words, WAKE + worker, 1);
    Atomics.notify(this.#words, WAKE + worker);
  }
}

/** About 20 µs: most steps are over by then, and a sleep costs twice that. */
const SPINS = 2000;
