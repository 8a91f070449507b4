// A download that is not finished: the bytes so far, and beside them a note that says of what they are. With the note
// the next run goes on where this one ended, or knows that it must not. Called by download.ts.

import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** What the bytes are a part of. */
export interface PartialNote {
  readonly url: string;
  /** A strong ETag, which If-Range wants; undefined when the server gives none. */
  readonly etag: string | undefined;
  /** Known in advance, so that the bytes can be continued from any server that has them. */
  readonly sha256: string | undefined;
}

/** The open file, written at its end; `hash` is that of all its bytes. */
export class PartialFile {
  readonly path: string;
  byteLength: number;
  #handle: FileHandle;
  #hash: Hash;

  private constructor(path: string, handle: FileHandle, state: { byteLength: number; hash: Hash }) {
    this.path = path;
    this.#handle = handle;
    this.byteLength = state.byteLength;
    this.#hash = state.hash;
  }

  /** With the bytes that are there, when they are of the same thing. */
  static async open(path: string, wanted: Pick<PartialNote, 'url' | 'sha256'>): Promise<PartialFile> {
    await mkdir(dirname(path), { recursive: true });
    const note = await readNote(path);
    const isSame =
      note !== undefined &&
      (wanted.sha256 === undefined
        ? note.url === wanted.url && note.etag !== undefined
        : note.sha256 === wanted.sha256);
    if (!isSame) await PartialFile.remove(path);
    const handle = await open(path, 'a');
    const hash = createHash('sha256');
    let byteLength = 0;
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      byteLength += chunk.length;
    }
    return new PartialFile(path, handle, { byteLength, hash });
  }

  static async remove(path: string): Promise<void> {
    await rm(path, { force: true });
    await rm(noteOf(path), { force: true });
  }

  readNote(): Promise<PartialNote | undefined> {
    return readNote(this.path);
  }

  async writeNote(note: PartialNote): Promise<void> {
    await writeFile(noteOf(this.path), JSON.stringify(note));
  }

  async append(chunk: Uint8Array): Promise<void> {
    let written = 0;
    while (written < chunk.byteLength) {
      const { bytesWritten } = await this.#handle.write(chunk, written, chunk.byteLength - written);
      written += bytesWritten;
    }
    this.#hash.update(chunk);
    this.byteLength += chunk.byteLength;
  }

  /** The server sends it from the beginning. */
  async restart(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = createHash('sha256');
    this.byteLength = 0;
  }

  /** Of what is there now; may be asked several times. */
  sha256(): string {
    return this.#hash.copy().digest('hex');
  }

  /** On disk, before it gets its name: a crash must not leave an empty file under it. */
  async sync(): Promise<void> {
    await this.#handle.sync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Bytes of an earlier run that can be used; for the check of the free space. */
export async function keptByteLength(path: string): Promise<number> {
  const info = await stat(path).catch(() => undefined);
  return info?.size ?? 0;
}

function noteOf(path: string): string {
  return `${path}.note.json`;
}

async function readNote(path: string): Promise<PartialNote | undefined> {
  try {
    return JSON.parse(await readFile(noteOf(path), 'utf8')) as PartialNote;
  } catch {
    // None, or half of one: then the bytes cannot be trusted either.
    return undefined;
  }
}
