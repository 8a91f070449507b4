// Where entries of the response cache lie: the memory of this server (local-store.ts) or Redis (redis-store.ts). A store knows
// digests and bytes; what they mean is the business of response-cache.ts.

import type { DigestName } from './cache-key.ts';

export interface CacheStore {
  /** True: entries outlive this process and other servers use them. */
  readonly isShared: boolean;
  /** An entry longer than this is refused. */
  readonly entryBytesMax: number;
  /** May answer at once. Never rejects: a store that is down has nothing. */
  find(scope: string, digest: DigestName): Buffer | undefined | Promise<Buffer | undefined>;
  /** True when the entry is known to be there, without asking anybody. */
  has(digest: DigestName): boolean;
  /** Takes the buffer as it is; nobody may change it afterwards. Never rejects. */
  put(scope: string, digest: DigestName, entry: Buffer): void | Promise<void>;
  /** A model was unloaded. */
  forget(scope: string): void | Promise<void>;
  close(): void;
}
