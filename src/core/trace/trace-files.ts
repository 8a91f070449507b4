// The files of Triton's trace format: `<file>` for what is written without a frequency, `<file>.0`, `<file>.1` … for
// the rest. Each is one JSON array. Writes are queued, in order, and bounded; an error is logged once and never
// reaches a request. Used by trace-setting.ts; trace-control.ts closes it.

import { type FileHandle, open } from 'node:fs/promises';
import type { Logger } from '../../lib/logger.ts';

/** What may wait for a slow disk; traces past it are dropped rather than memory exhausted. */
const PENDING_CHARS_MAX = 64 * 1024 * 1024;

/** One JSON array on its way to a file; the file is made with the first write. */
export interface TraceArray {
  /** One or several elements, separated by commas. */
  append(elements: string): void;
  /** Nothing follows. */
  finish(): void;
}

export class TraceFiles {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #main: TraceArray;
  #nextIndex = 0;
  #pendingChars = 0;
  /** Every write so far; it never rejects. */
  #written: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #hasDropped = false;

  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
    this.#main = this.#createArray(path);
  }

  main(): TraceArray {
    return this.#main;
  }

  nextIndexed(): TraceArray {
    return this.#createArray(`${this.#path}.${this.#nextIndex++}`);
  }

  /** Everything is on disk, and `<file>` is a whole array. */
  async close(): Promise<void> {
    this.#main.finish();
    await this.#written;
  }

  #createArray(path: string): TraceArray {
    let handle: FileHandle | undefined;
    let isBegun = false;
    return {
      append: (elements) => {
        if (this.#isFull(elements)) return;
        const text = isBegun ? `,${elements}` : `[${elements}`;
        isBegun = true;
        this.#enqueue(text.length, async () => {
          handle ??= await open(path, 'w');
          await handle.writeFile(text);
        });
      },
      finish: () => {
        if (!isBegun) return;
        isBegun = false;
        this.#enqueue(1, async () => {
          await handle?.writeFile(']');
          await handle?.close();
        });
      },
    };
  }

  #isFull(elements: string): boolean {
    if (this.#pendingChars + elements.length <= PENDING_CHARS_MAX) return false;
    if (!this.#hasDropped) this.#logger.error('traces are dropped: the trace file is written too slowly');
    this.#hasDropped = true;
    return true;
  }

  #enqueue(charCount: number, write: () => Promise<void>): void {
    this.#pendingChars += charCount;
    this.#written = this.#written.then(write).then(
      () => this.#settle(charCount),
      (thrown) => {
        this.#settle(charCount);
        this.#logFailure(thrown);
      },
    );
  }

  #settle(charCount: number): void {
    this.#pendingChars -= charCount;
  }

  #logFailure(thrown: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#logger.error(
      `failed creating trace file: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    );
  }
}
