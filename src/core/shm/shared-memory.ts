// The shared-memory regions that clients have registered. Frontends register, list and unregister here;
// infer-shared.ts holds ranges of them for the time of a request. A region that is unregistered while a request
// uses it stays until that request ends, as in Triton.

import { SHM_READING_BYTES_MAX, SHM_REGIONS_MAX } from '../../domain/limits.ts';
import type { MemoryRange } from '../../domain/memory-range.ts';
import { invalidArgument, notFound, StatusError, unavailable, unsupported } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import type { HostCommand } from '../../instance/host-process.ts';
import type { LogLevel } from '../../instance/instance.ts';
import { CudaMemory } from './cuda-memory.ts';
import { HeldRange } from './held-range.ts';
import { fileNameOf, requireAllowedName, requireNotReserved } from './key-rules.ts';
import type { CudaRegionStatus, Region, Span, SystemRegionStatus } from './region.ts';
import { RegionFile } from './region-file.ts';

export type { CudaRegionStatus, SystemRegionStatus };

export interface SharedMemoryOptions {
  /** --allow-client-shm */
  readonly isAllowed: boolean;
  /** --shared-memory-allow; undefined when the flag is absent. */
  readonly allowedPrefixes: readonly string[] | undefined;
  readonly hasGpu: boolean;
  /** Starts the memory host; without it no CUDA region can be registered. */
  readonly memoryHostCommand?: HostCommand;
  /** What the memory host has to say. */
  log?(level: LogLevel, message: string): void;
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

const DISABLED =
  "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
/** Triton maps the object, and a mapping begins at a page. */
const PAGE_BYTES = 4096;
const CUDA_HANDLE_BYTES = 64;
const UINT64_MAX = 2n ** 64n - 1n;

export class SharedMemory {
  readonly #options: SharedMemoryOptions;
  readonly #regions = new Map<string, Region>();
  /** Names of CUDA regions whose handle is being opened. */
  readonly #opening = new Set<string>();
  readonly #cuda: CudaMemory | undefined;
  #readingBytes = 0;

  constructor(options: SharedMemoryOptions) {
    this.#options = options;
    const { hasGpu, memoryHostCommand: command } = options;
    if (!hasGpu || command === undefined) return;
    this.#cuda = new CudaMemory({
      command,
      log: (level, message) => options.log?.(level, message),
      onLost: () => this.#dropLost(),
    });
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
    this.#regions.set(name, { kind: 'system', status, memory: file, useCount: 0, isEnding: false });
  }

  /** A server without a GPU answers as Triton does there, at once; otherwise the handle is opened. */
  registerCuda(options: CudaRegionOptions): Promise<void> {
    this.requireAllowed();
    const { name, rawHandle } = options;
    if (rawHandle.length !== CUDA_HANDLE_BYTES) {
      throw invalidArgument("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
    }
    this.#requireFreeName(name);
    if (this.#cuda !== undefined) return this.#openCuda(this.#cuda, options);
    if (this.#options.hasGpu) {
      throw invalidArgument(`failed to register CUDA shared memory region: '${name}', GPUs not supported`);
    }
    throw invalidArgument('failed to register shared memory region: invalid args');
  }

  async #openCuda(cuda: CudaMemory, options: CudaRegionOptions): Promise<void> {
    const { name, rawHandle, deviceId } = options;
    const byteSize = Number(unsigned(options.byteSize));
    this.#opening.add(name);
    try {
      const memory = await cuda.open({ name, rawHandle, deviceId, byteSize });
      const status = { name, deviceId, byteSize };
      this.#regions.set(name, { kind: 'cuda', status, memory, useCount: 0, isEnding: false });
    } finally {
      this.#opening.delete(name);
    }
  }

  #requireFreeName(name: string): void {
    if (this.#regions.has(name) || this.#opening.has(name)) {
      throw new StatusError('ALREADY_EXISTS', `shared memory region '${name}' already in manager`);
    }
    if (this.#regions.size + this.#opening.size >= SHM_REGIONS_MAX) {
      throw unavailable(
        `failed to register shared memory region '${name}': ${SHM_REGIONS_MAX} regions are registered already. Unregister those that are not used.`,
      );
    }
  }

  /** An empty name is all of them; an unknown one, or one of the other kind, is no error. */
  unregisterSystem(name: string): void {
    this.requireAllowed();
    for (const region of this.#selected(name)) if (region.kind === 'system') void this.#end(region);
  }

  /** As `unregisterSystem`. Resolves when the handles are closed: a client may free its memory then. */
  unregisterCuda(name: string): Promise<void> {
    this.requireAllowed();
    const regions = this.#selected(name).filter((region) => region.kind === 'cuda');
    return Promise.all(regions.map((region) => this.#end(region))).then(() => undefined);
  }

  #selected(name: string): Region[] {
    if (name === '') return [...this.#regions.values()];
    const region = this.#regions.get(name);
    return region === undefined ? [] : [region];
  }

  /** At once, or with the last request that uses the region. */
  #end(region: Region): void | Promise<void> {
    region.isEnding = true;
    if (region.useCount > 0) return;
    // A lost region has made room for another of its name.
    if (this.#regions.get(region.status.name) === region) this.#regions.delete(region.status.name);
    return region.memory.close();
  }

  /** Of regions whose memory host has died not even the name is kept; copies under way have failed by themselves. */
  #dropLost(): void {
    for (const [name, region] of this.#regions) {
      if (region.kind === 'cuda' && region.memory.isLost) this.#regions.delete(name);
    }
  }

  /** An empty name is all of them, in the order of their names. */
  systemStatus(name: string): readonly SystemRegionStatus[] {
    const regions = this.#selected(name);
    if (name !== '') {
      if (regions.length === 0) throw notFound(`Unable to find system shared memory region: '${name}'`);
      if (regions[0]!.kind !== 'system') throw otherKind(name, { is: 'CUDA', isNot: 'system' });
    }
    return sorted(regions.filter((region) => region.kind === 'system').map((region) => region.status));
  }

  /** As `systemStatus`. */
  cudaStatus(name: string): readonly CudaRegionStatus[] {
    const regions = this.#selected(name);
    if (name !== '') {
      if (regions.length === 0) throw notFound(`Unable to find cuda shared memory region: '${name}'`);
      if (regions[0]!.kind !== 'cuda') throw otherKind(name, { is: 'system', isNot: 'CUDA' });
    }
    return sorted(regions.filter((region) => region.kind === 'cuda').map((region) => region.status));
  }

  /** Throws when there is no such range; otherwise it is the caller's until `release`. */
  hold(range: MemoryRange): HeldRange {
    const region = this.#regions.get(range.region);
    if (region === undefined) throw notFound(`Unable to find shared memory region: '${range.region}'`);
    requireBounds(range, region.status);
    region.useCount++;
    return new HeldRange(this, region, range);
  }

  /** For HeldRange alone: a copy keeps the region open, whoever lets go of the range meanwhile. */
  async readHeld(region: Region, span: Span): Promise<TensorBytes> {
    if (this.#readingBytes + span.byteLength > SHM_READING_BYTES_MAX) {
      throw unavailable(
        `${this.#readingBytes} bytes are being read from shared memory; ${span.byteLength} more would exceed the limit of ${SHM_READING_BYTES_MAX}`,
      );
    }
    this.#readingBytes += span.byteLength;
    region.useCount++;
    try {
      return await region.memory.read(span);
    } finally {
      this.#readingBytes -= span.byteLength;
      this.releaseHeld(region);
    }
  }

  /** As `readHeld`. */
  async writeHeld(region: Region, span: Span, data: TensorBytes): Promise<void> {
    region.useCount++;
    try {
      await region.memory.write(span, data);
    } finally {
      this.releaseHeld(region);
    }
  }

  releaseHeld(region: Region): void {
    region.useCount--;
    if (region.isEnding) void this.#end(region);
  }

  /** Every system region, at once or when its last request ends; CUDA regions and their process. */
  async close(): Promise<void> {
    for (const region of this.#selected('')) if (region.kind === 'system') void this.#end(region);
    await this.#cuda?.close();
  }
}

function otherKind(name: string, kinds: { is: string; isNot: string }): StatusError {
  return notFound(
    `The region named '${name}' is registered as ${kinds.is} shared memory, not ${kinds.isNot} shared memory`,
  );
}

function sorted<Row extends { readonly name: string }>(rows: Row[]): Row[] {
  return rows.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function requireInside(options: SystemRegionOptions, fileBytes: number): void {
  const { name, offset, byteSize } = options;
  const refused = `failed to register shared memory region '${name}'`;
  if (BigInt(offset) + BigInt(byteSize) > fileBytes) throw invalidArgument(`${refused}: invalid args`);
  if (Number(offset) % PAGE_BYTES !== 0 || Number(byteSize) === 0) {
    throw invalidArgument(`${refused}: unable to process address spaceInvalid argument`);
  }
}

function requireBounds(range: MemoryRange, status: { readonly byteSize: number }): void {
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
