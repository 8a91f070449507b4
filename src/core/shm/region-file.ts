// One shared-memory object as an open file. It is read and written, never mapped: a client that shortens a
// mapped object would end the whole server with SIGBUS, while here the copy comes up short and is refused.
// Only shared-memory.ts opens files.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  read,
  readSync,
  write,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { SHM_BUFFER_BYTES_MAX, SHM_INLINE_BYTES_MAX, SHM_STEP_BYTES_MAX } from '../../domain/limits.ts';
import { invalidArgument, type StatusError, unavailable, unsupported } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import { cannotOpen } from './key-rules.ts';
import type { RegionMemory, Span } from './region.ts';

const FOLDER = '/dev/shm';
/** A link would lead out of the folder; a pipe must not make the server wait. */
const OPEN_FLAGS = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const NO_BYTES: TensorBytes = [];
const readAsync = promisify(read);
const writeAsync = promisify(write);

export class RegionFile implements RegionMemory {
  readonly #key: string;
  readonly #fd: number;

  /** `name` is a file name, `key` what the client calls it. Throws a StatusError. */
  constructor(name: string, key: string) {
    this.#key = key;
    this.#fd = openRegion(`${FOLDER}/${name}`, key);
    try {
      if (!fstatSync(this.#fd).isFile()) throw cannotOpen(key);
    } catch (thrown) {
      closeSync(this.#fd);
      throw thrown;
    }
  }

  byteLength(): number {
    return fstatSync(this.#fd).size;
  }

  isInline(byteLength: number): boolean {
    return byteLength <= SHM_INLINE_BYTES_MAX;
  }

  /** Synchronous when small. */
  read(span: Span): TensorBytes | Promise<TensorBytes> {
    if (span.byteLength === 0) return NO_BYTES;
    if (!this.isInline(span.byteLength)) return this.#readInSteps(span);
    const buffer = Buffer.allocUnsafe(span.byteLength);
    for (let at = 0; at < buffer.length; ) {
      const count = readSync(this.#fd, buffer, at, buffer.length - at, span.position + at);
      if (count === 0) throw this.#tooShort(span);
      at += count;
    }
    return [buffer];
  }

  async #readInSteps(span: Span): Promise<TensorBytes> {
    // Before any memory is taken for bytes that are not there.
    this.#requireLength(span);
    const buffers: Buffer[] = [];
    for (let done = 0; done < span.byteLength; ) {
      const buffer = Buffer.allocUnsafeSlow(Math.min(span.byteLength - done, SHM_BUFFER_BYTES_MAX));
      for (let at = 0; at < buffer.length; ) {
        const length = Math.min(buffer.length - at, SHM_STEP_BYTES_MAX);
        const { bytesRead } = await readAsync(this.#fd, buffer, at, length, span.position + done + at);
        if (bytesRead === 0) throw this.#tooShort(span);
        at += bytesRead;
      }
      buffers.push(buffer);
      done += buffer.length;
    }
    return buffers;
  }

  /** Synchronous when small. */
  write(span: Span, data: TensorBytes): void | Promise<void> {
    // Writing behind the end would make the object longer, which a mapping never does.
    this.#requireLength(span);
    if (!this.isInline(span.byteLength)) return this.#writeInSteps(span, data);
    let { position } = span;
    for (const view of data) {
      for (let at = 0; at < view.length; ) {
        const count = writeSync(this.#fd, view, at, view.length - at, position);
        at += count;
        position += count;
      }
    }
  }

  async #writeInSteps(span: Span, data: TensorBytes): Promise<void> {
    let { position } = span;
    for (const view of data) {
      for (let at = 0; at < view.length; ) {
        const length = Math.min(view.length - at, SHM_STEP_BYTES_MAX);
        const { bytesWritten } = await writeAsync(this.#fd, view, at, length, position);
        at += bytesWritten;
        position += bytesWritten;
      }
    }
  }

  #requireLength(span: Span): void {
    if (span.position + span.byteLength > this.byteLength()) throw this.#tooShort(span);
  }

  #tooShort(span: Span): StatusError {
    const end = span.position + span.byteLength;
    return invalidArgument(
      `shared memory object '${this.#key}' has become shorter since it was registered: it ends before byte ${end}`,
    );
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function openRegion(path: string, key: string): number {
  try {
    return openSync(path, OPEN_FLAGS);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'EMFILE' || code === 'ENFILE') {
      throw unavailable(`${cannotOpen(key).message}: the server has no file descriptor left`);
    }
    if (!existsSync(FOLDER)) {
      throw unsupported(`system shared memory is not supported on this platform: it has no ${FOLDER}`);
    }
    throw cannotOpen(key);
  }
}
