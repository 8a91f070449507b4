// The keys of --openai-api-key-file: one per line, empty lines and lines that begin with # ignored. The file is read again
// when it changes; while it cannot be read the keys before it stay. server.ts opens it, openai-routes.ts asks it.

import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import type { Logger } from '../../lib/logger.ts';

/** A key that was taken away works at most this much longer. */
const POLL_MS = 1000;

export class ApiKeys {
  readonly #path: string;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout;
  #digests: readonly Buffer[];
  #stamp: string;
  #isBusy = false;

  /** Throws when the file cannot be read, or has no key: nobody could be served. */
  static async open(options: { path: string; logger: Logger; pollMs?: number }): Promise<ApiKeys> {
    const { path } = options;
    const stamp = await stampOf(path);
    const text = await readFile(path, 'utf8').catch((thrown: unknown) => {
      throw invalidArgument(`--openai-api-key-file: cannot read it: ${StatusError.from(thrown).message}`);
    });
    const digests = parseKeys(text).map((key) => digestOf(key));
    if (digests.length === 0) throw invalidArgument(`--openai-api-key-file: '${path}' has no key in it`);
    return new ApiKeys(options, { digests, stamp });
  }

  private constructor(
    options: { path: string; logger: Logger; pollMs?: number },
    first: { digests: readonly Buffer[]; stamp: string },
  ) {
    this.#path = options.path;
    this.#logger = options.logger;
    this.#digests = first.digests;
    this.#stamp = first.stamp;
    this.#timer = setInterval(() => void this.#look(), options.pollMs ?? POLL_MS);
    this.#timer.unref();
  }

  /** `Bearer <key>`. Takes the same time whichever key it is, and whether it is one. */
  isAccepted(authorization: string | undefined): boolean {
    const key = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
    if (key === undefined) return false;
    // A header is read one character per byte.
    const digest = digestOf(Buffer.from(key, 'latin1'));
    let isFound = false;
    for (const known of this.#digests) isFound = timingSafeEqual(known, digest) || isFound;
    return isFound;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      // Before reading: what changes in between is seen at the next look.
      const stamp = await stampOf(this.#path);
      if (stamp === this.#stamp) return;
      this.#stamp = stamp;
      this.#digests = parseKeys(await readFile(this.#path, 'utf8')).map((key) => digestOf(key));
      this.#logger.info(`the API keys were read again: ${this.#digests.length}`);
    } catch (thrown) {
      this.#logger.error(`the API keys in use stay: ${StatusError.from(thrown).message}`);
    } finally {
      this.#isBusy = false;
    }
  }
}

export function parseKeys(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** Equal lengths, which the comparison needs, and no key in memory. */
function digestOf(key: string | Buffer): Buffer {
  return createHash('sha256').update(key).digest();
}

async function stampOf(path: string): Promise<string> {
  const info = await stat(path).catch(() => undefined);
  return info === undefined ? 'none' : `${info.ino} ${info.size} ${info.mtimeMs} ${info.ctimeMs}`;
}
