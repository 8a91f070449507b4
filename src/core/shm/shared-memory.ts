// The shared-memory regions that clients have registered. Frontends register, list and unregister here;
// infer-shared.ts holds ranges of them for the time of a request. A region that is unregistered while a request
// uses it stays until that request ends, as in Triton.

import { SHM_INLINE_BYTES_MAX, SHM_READING_BYTES_MAX, SHM_REGIONS_MAX } from '../../domain/limits.ts';
import type { MemoryRange } from '../../domain/memory-range.ts';
import { invalidArgument, notFound, StatusError, unavailable, unsupported } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import { fileNameOf, requireAllowedName, requireNotReserved } from './key-rules.ts';
import { RegionFile, type Span } from './region-file.ts';

export interface SharedMemoryOptions {
  /** --allow-client-shm */
  readonly isAllowed: boolean;
  /** --shared-memory-allow; undefined when the flag is absent. */
  readonly allowedPrefixes: readonly string[] | undefined;
  readonly hasGpu: boolean;
}

export interface SystemRegionOptions {
  readonly name: string;
  readonly key: string;
  readonly offset: number | bigint;
  readonly byteSize: number | bigint;
}

export interface CudaRegionOptions {
  readonly name: string;
  /** A cudaIpcMemHandle_t. */
  readonly rawHandle: Buffer;
  readonly deviceId: number;
  readonly byteSize: number | bigint;
}

export interface SystemRegionStatus {
  readonly name: string;
  /** As the client wrote it. */
  readonly key: string;
  readonly offset: number;
  readonly byteSize: number;
}

export interface CudaRegionStatus {
  readonly name: string;
  readonly deviceId: number;
  readonly byteSize: number;
}

interface Region {
  readonly status: SystemRegionStatus;
  readonly file: RegionFile;
  /** Requests and copies under way. */
  useCount: number;
  isEnding: boolean;
}

const DISABLED =
  "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
/** Triton maps the object, and a mapping begins at a page. */
const PAGE_BYTES = 4096;
const CUDA_HANDLE_BYTES = 64;
const UINT64_MAX = 2n ** 64n - 1n;

export class SharedMemory {
  readonly #options: SharedMemoryOptions;
  readonly #regions = new Map<string, Region>();
  #readingBytes = 0;

  constructor(options: SharedMemoryOptions) {
    this.#options = options;
  }

  /** Register and unregister call it; frontends do first where Triton refuses before it reads the request. */
  requireAllowed(): void {
    if (!this.#options.isAllowed) throw unsupported(DISABLED);
  }

  registerSystem(options: SystemRegionOptions): void {
    this.requireAllowed();
    const { name, key } = options;
    const fileName = fileNameOf(key, name);
    const { allowedPrefixes } = this.#options;
    requireAllowedName(fileName, { region: name, key, allowedPrefixes });
    this.#requireFreeName(name);
    const file = new RegionFile(fileName, key);
    try {
      requireNotReserved(fileName, { region: name, key });
      requireInside(options, file.byteLength());
    } catch (thrown) {
      file.close();
      throw thrown;
    }
    const status = { name, key, offset: Number(options.offset), byteSize: Number(options.byteSize) };
    this.#regions.set(name, { status, file, useCount: 0, isEnding: false });
  }

  #requireFreeName(name: string): void {
    if (this.#regions.has(name)) {
      throw new StatusError('ALREADY_EXISTS', `shared memory region '${name}' already in manager`);
    }
    if (this.#regions.size >= SHM_REGIONS_MAX) {
      throw unavailable(
        `failed to register shared memory region '${name}': ${SHM_REGIONS_MAX} regions are registered already. Unregister those that are not used.`,
      );
    }
  }

  /** An empty name is all of them; an unknown one is no error. */
  unregisterSystem(name: string): void {
    this.requireAllowed();
    if (name !== '') {
      const region = this.#regions.get(name);
      if (region !== undefined) this.#end(region);
      return;
    }
    this.close();
  }

  #end(region: Region): void {
    region.isEnding = true;
    if (region.useCount > 0) return;
    this.#regions.delete(region.status.name);
    region.file.close();
  }

  /** An empty name is all of them, in the order of their names. */
  systemStatus(name: string): readonly SystemRegionStatus[] {
    if (name === '') {
      const all = [...this.#regions.values()].map((region) => region.status);
      return all.sort((a, b) => (a.name < b.name ? -1 : 1));
    }
    const region = this.#regions.get(name);
    if (region === undefined) throw notFound(`Unable to find system shared memory region: '${name}'`);
    return [region.status];
  }

  /** No handle is opened by this version; a server without a GPU answers as Triton does there. */
  registerCuda(options: CudaRegionOptions): void {
    this.requireAllowed();
    const { name, rawHandle } = options;
    if (rawHandle.length !== CUDA_HANDLE_BYTES) {
      throw invalidArgument("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
    }
    if (this.#options.hasGpu) {
      throw invalidArgument(`failed to register CUDA shared memory region: '${name}', GPUs not supported`);
    }
    throw invalidArgument('failed to register shared memory region: invalid args');
  }

  unregisterCuda(_name: string): void {
    this.requireAllowed();
  }

  cudaStatus(name: string): readonly CudaRegionStatus[] {
    if (name === '') return [];
    if (this.#regions.has(name)) {
      throw notFound(
        `The region named '${name}' is registered as system shared memory, not CUDA shared memory`,
      );
    }
    throw notFound(`Unable to find cuda shared memory region: '${name}'`);
  }

  /** Throws when there is no such range; otherwise it is the caller's until `release`. */
  hold(range: MemoryRange): HeldRange {
    const region = this.#regions.get(range.region);
    if (region === undefined) throw notFound(`Unable to find shared memory region: '${range.region}'`);
    requireBounds(range, region.status);
    region.useCount++;
    return new HeldRange(this, region, range);
  }

  /** For HeldRange alone: a copy keeps the file open, whoever lets go of the range meanwhile. */
  async readHeld(region: Region, span: Span): Promise<TensorBytes> {
    if (this.#readingBytes + span.byteLength > SHM_READING_BYTES_MAX) {
      throw unavailable(
        `${this.#readingBytes} bytes are being read from shared memory; ${span.byteLength} more would exceed the limit of ${SHM_READING_BYTES_MAX}`,
      );
    }
    this.#readingBytes += span.byteLength;
    region.useCount++;
    try {
      return await region.file.read(span);
    } finally {
      this.#readingBytes -= span.byteLength;
      this.releaseHeld(region);
    }
  }

  /** As `readHeld`. */
  async writeHeld(region: Region, span: Span, data: TensorBytes): Promise<void> {
    region.useCount++;
    try {
      await region.file.write(span, data);
    } finally {
      this.releaseHeld(region);
    }
  }

  releaseHeld(region: Region): void {
    region.useCount--;
    if (region.isEnding) this.#end(region);
  }

  /** Every region, at once or when its last request ends. */
  close(): void {
    for (const region of [...this.#regions.values()]) this.#end(region);
  }
}

/** A range of a region, from the check of the request to its last answer. */
export class HeldRange {
  readonly #memory: SharedMemory;
  readonly #region: Region;
  readonly #position: number;
  readonly byteSize: number;
  #isReleased = false;

  constructor(memory: SharedMemory, region: Region, range: MemoryRange) {
    this.#memory = memory;
    this.#region = region;
    this.#position = region.status.offset + Number(range.offset);
    this.byteSize = Number(range.byteSize);
  }

  get isSmall(): boolean {
    return this.byteSize <= SHM_INLINE_BYTES_MAX;
  }

  /** Synchronous when small. */
  read(): TensorBytes | Promise<TensorBytes> {
    const span = { position: this.#position, byteLength: this.byteSize };
    if (this.isSmall) return this.#region.file.read(span);
    return this.#memory.readHeld(this.#region, span);
  }

  /** From the start of the range; the caller has compared the sizes. Synchronous when small. */
  write(data: TensorBytes, byteLength: number): void | Promise<void> {
    const span = { position: this.#position, byteLength };
    if (byteLength <= SHM_INLINE_BYTES_MAX) return this.#region.file.write(span, data);
    return this.#memory.writeHeld(this.#region, span, data);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#memory.releaseHeld(this.#region);
  }
}

function requireInside(options: SystemRegionOptions, fileBytes: number): void {
  const { name, offset, byteSize } = options;
  const refused = `failed to register shared memory region '${name}'`;
  if (BigInt(offset) + BigInt(byteSize) > fileBytes) throw invalidArgument(`${refused}: invalid args`);
  if (Number(offset) % PAGE_BYTES !== 0 || Number(byteSize) === 0) {
    throw invalidArgument(`${refused}: unable to process address spaceInvalid argument`);
  }
}

function requireBounds(range: MemoryRange, status: SystemRegionStatus): void {
  const { region } = range;
  const offset = unsigned(range.offset);
  const byteSize = unsigned(range.byteSize);
  if (offset >= status.byteSize) {
    throw invalidArgument(`Invalid offset for shared memory region: '${region}'`);
  }
  if (typeof byteSize === 'bigint' && byteSize > UINT64_MAX - BigInt(offset)) {
    throw invalidArgument(
      `Integer overflow detected: byte_size (${byteSize}) + offset (${offset}) exceeds maximum value (${UINT64_MAX}) for region '${region}'`,
    );
  }
  if (Number(offset) + Number(byteSize) > status.byteSize) {
    throw invalidArgument(`Invalid offset + byte size for shared memory region: '${region}'`);
  }
}

/** gRPC sends int64 where Triton computes with size_t: what is negative becomes very large. */
function unsigned(value: number | bigint): number | bigint {
  return value < 0 ? BigInt.asUintN(64, BigInt(value)) : value;
}
