// The local cache: entries in the memory of this server, up to a number of bytes; the least recently used go first.
// Everything an entry takes is counted: its bytes, key included, and what the tables keep for it.

import type { DigestName } from './cache-key.ts';
import type { CacheStore } from './cache-store.ts';
import { nextTurn } from './in-steps.ts';

/** What an entry takes beside its bytes on Node 20: 380 bytes of V8's heap, measured, and the block and header of its memory. */
export const ENTRY_OVERHEAD_BYTES = 512;

/** Entries removed in one turn of the event loop: below a millisecond. */
const FORGET_STEP_ENTRIES = 2_000;

/** Also a link of the list by last use. A Map keeps an order too, but finding its first key walks over all it has lost. */
interface Stored {
  readonly digest: DigestName;
  readonly scope: string;
  readonly entry: Buffer;
  older: Stored | undefined;
  newer: Stored | undefined;
}

export class LocalStore implements CacheStore {
  readonly isShared = false;
  readonly sizeBytes: number;
  readonly entryBytesMax: number;
  readonly #entries = new Map<DigestName, Stored>();
  readonly #scopes = new Map<string, Set<DigestName>>();
  #oldest: Stored | undefined;
  #newest: Stored | undefined;
  #usedBytes = 0;
  #evictionCount = 0;

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
    this.entryBytesMax = sizeBytes - ENTRY_OVERHEAD_BYTES;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get entryCount(): number {
    return this.#entries.size;
  }

  get evictionCount(): number {
    return this.#evictionCount;
  }

  find(_scope: string, digest: DigestName): Buffer | undefined {
    const stored = this.#entries.get(digest);
    if (stored === undefined) return undefined;
    this.#unlink(stored);
    this.#linkNewest(stored);
    return stored.entry;
  }

  has(digest: DigestName): boolean {
    return this.#entries.has(digest);
  }

  put(scope: string, digest: DigestName, entry: Buffer): void {
    const bytes = entry.length + ENTRY_OVERHEAD_BYTES;
    if (bytes > this.sizeBytes) return;
    const before = this.#entries.get(digest);
    if (before !== undefined) this.#remove(before);
    while (this.#oldest !== undefined && this.#usedBytes + bytes > this.sizeBytes) {
      this.#remove(this.#oldest);
      this.#evictionCount++;
    }
    const stored: Stored = { digest, scope, entry, older: undefined, newer: undefined };
    this.#entries.set(digest, stored);
    this.#linkNewest(stored);
    this.#usedBytes += bytes;
    let digests = this.#scopes.get(scope);
    if (digests === undefined) {
      digests = new Set();
      this.#scopes.set(scope, digests);
    }
    digests.add(digest);
  }

  async forget(scope: string): Promise<void> {
    let left = FORGET_STEP_ENTRIES;
    for (const digest of this.#scopes.get(scope) ?? []) {
      this.#remove(this.#entries.get(digest)!);
      left--;
      if (left > 0) continue;
      await nextTurn();
      left = FORGET_STEP_ENTRIES;
    }
  }

  close(): void {
    this.#entries.clear();
    this.#scopes.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
    this.#usedBytes = 0;
  }

  #remove(stored: Stored): void {
    this.#entries.delete(stored.digest);
    this.#unlink(stored);
    this.#usedBytes -= stored.entry.length + ENTRY_OVERHEAD_BYTES;
    const digests = this.#scopes.get(stored.scope);
    digests?.delete(stored.digest);
    if (digests?.size === 0) this.#scopes.delete(stored.scope);
  }

  #unlink(stored: Stored): void {
    const { older, newer } = stored;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }

  #linkNewest(stored: Stored): void {
    stored.older = this.#newest;
    stored.newer = undefined;
    if (this.#newest === undefined) this.#oldest = stored;
    else this.#newest.newer = stored;
    this.#newest = stored;
  }
}
