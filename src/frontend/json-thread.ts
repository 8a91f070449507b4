// Large JSON is parsed and written on a thread of its own, so that a body of many megabytes never holds up the other requests.
// Each folder has a module of tasks, which are pure, so that both sides can run them; the thread imports it by its URL. One
// thread for all frontends, started with the first task. server.ts makes it; the large-json.ts files give it work.

import { Worker } from 'node:worker_threads';
import { type StatusCode, StatusError, unavailable } from '../domain/status.ts';

/** What the thread imports. What a task throws reaches the caller as a StatusError. */
export interface TaskModule {
  runTask(options: unknown): TaskOutcome;
}

/** `made`: arrays in the value that are nobody else's, which move instead of being copied. */
export interface TaskOutcome {
  readonly value: unknown;
  readonly made: readonly Uint8Array[];
}

export interface ThreadTask {
  readonly id: number;
  /** URL of the module. */
  readonly module: string;
  readonly options: unknown;
}

export type ThreadResult =
  | { readonly id: number; readonly isOk: true; readonly value: unknown }
  | { readonly id: number; readonly isOk: false; readonly code: StatusCode; readonly message: string };

interface Pending {
  resolve(value: unknown): void;
  reject(error: StatusError): void;
}

export class JsonThread {
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #nextId = 1;

  /** `moved`: bytes in the options that the caller does not look at again. */
  run(module: URL, options: unknown, moved: readonly Uint8Array[]): Promise<unknown> {
    const task: ThreadTask = { id: this.#nextId++, module: module.href, options };
    return new Promise((resolve, reject) => {
      this.#pending.set(task.id, { resolve, reject });
      const worker = this.#ensureWorker();
      // A process that wants to end waits for tasks, not for the thread.
      worker.ref();
      worker.postMessage(task, ownedBuffers(moved));
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #ensureWorker(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(new URL('./json-thread-worker.js', import.meta.url));
    worker.on('message', (result: ThreadResult) => {
      const pending = this.#pending.get(result.id);
      this.#pending.delete(result.id);
      if (this.#pending.size === 0) worker.unref();
      if (result.isOk) pending?.resolve(result.value);
      else pending?.reject(new StatusError(result.code, result.message));
    });
    worker.on('error', (error) => this.#lose(worker, error.message));
    worker.on('exit', () => this.#lose(worker, 'it ended'));
    this.#worker = worker;
    return worker;
  }

  /** The thread died (out of memory): its tasks fail, the next one starts a new thread. */
  #lose(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of lost) pending.reject(unavailable(`the thread for large JSON failed: ${reason}`));
  }
}

/** The memory of arrays that are all of it, which can be moved to another thread instead of being copied. */
export function ownedBuffers(arrays: readonly Uint8Array[]): ArrayBuffer[] {
  const owned = new Set<ArrayBuffer>();
  for (const { buffer, byteLength } of arrays) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) owned.add(buffer);
  }
  return [...owned];
}

/** Structured clone turns a Buffer into a Uint8Array. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
