// CUDA memory of clients, through the memory host: one process for all regions, started with the first of them and again
// after it has died. shared-memory.ts opens regions here and is told when they are lost.

import { SHM_STEP_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError, unavailable } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import type { HostCommand } from '../../instance/host-process.ts';
import type { LogLevel } from '../../instance/instance.ts';
import { MemoryHost } from '../../instance/memory-host.ts';
import type { RegionMemory, Span } from './region.ts';

export interface CudaMemoryOptions {
  readonly command: HostCommand;
  log(level: LogLevel, message: string): void;
  /** The memory host has ended: `isLost` is true of all regions it held. */
  onLost(): void;
}

export interface CudaOpenOptions {
  readonly name: string;
  readonly rawHandle: Buffer;
  readonly deviceId: number;
  readonly byteSize: number;
}

const NO_BYTES: TensorBytes = [];

export class CudaMemory {
  readonly #options: CudaMemoryOptions;
  /** Undefined before the first region and after the process has died. */
  #host: Promise<MemoryHost> | undefined;
  #isClosed = false;

  constructor(options: CudaMemoryOptions) {
    this.#options = options;
  }

  async open(options: CudaOpenOptions): Promise<CudaRegionMemory> {
    const { name, rawHandle, deviceId, byteSize } = options;
    const host = await this.#start().catch((thrown: unknown) => {
      throw notRegistered(name, thrown);
    });
    try {
      const region = await host.open({ name, deviceId, byteSize }, rawHandle);
      return new CudaRegionMemory({ name, host, region, log: this.#options.log });
    } catch (thrown) {
      // What the memory host answers is worded for the client; that it died instead is not.
      throw host.isEnded ? notRegistered(name, thrown) : thrown;
    }
  }

  async #start(): Promise<MemoryHost> {
    if (this.#isClosed) throw unavailable('the server is exiting');
    this.#host ??= this.#launch();
    return this.#host;
  }

  async #launch(): Promise<MemoryHost> {
    try {
      return await MemoryHost.launch(this.#options.command, {
        onLog: this.#options.log,
        onExit: (reason) => this.#onExit(reason),
      });
    } catch (thrown) {
      this.#host = undefined;
      throw thrown;
    }
  }

  #onExit(reason: string): void {
    this.#host = undefined;
    if (!this.#isClosed) {
      this.#options.log('error', `the memory host ${reason}: all CUDA shared memory regions are lost`);
    }
    this.#options.onLost();
  }

  /** Ends the process, and with it every region. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const host = await this.#host?.catch(() => undefined);
    await host?.stop();
  }
}

export class CudaRegionMemory implements RegionMemory {
  readonly #name: string;
  readonly #host: MemoryHost;
  readonly #region: number;
  readonly #log: CudaMemoryOptions['log'];

  constructor(options: { name: string; host: MemoryHost; region: number; log: CudaMemoryOptions['log'] }) {
    this.#name = options.name;
    this.#host = options.host;
    this.#region = options.region;
    this.#log = options.log;
  }

  get isLost(): boolean {
    return this.#host.isEnded;
  }

  isInline(): boolean {
    return false;
  }

  async read(span: Span): Promise<TensorBytes> {
    const copies = stepsOf(span).map((step) => this.#host.read({ region: this.#region, ...step }));
    const pieces = await this.#settled(copies);
    return pieces.length === 0 ? NO_BYTES : pieces.flat();
  }

  async write(span: Span, data: TensorBytes): Promise<void> {
    let rest = data;
    const copies = stepsOf(span).map(({ position, byteLength }) => {
      const [step, left] = splitBytes(rest, byteLength);
      rest = left;
      return this.#host.write({ region: this.#region, position }, step);
    });
    await this.#settled(copies);
  }

  /** Waits for every step, also after one has failed: no step of a request goes on behind its answer. */
  async #settled<Value>(copies: readonly Promise<Value>[]): Promise<Value[]> {
    const results = await Promise.allSettled(copies);
    return results.map((result) => {
      if (result.status === 'fulfilled') return result.value;
      const { code, message } = StatusError.from(result.reason);
      const fix = this.isLost ? '. Register it again.' : '';
      throw new StatusError(code, `CUDA shared memory region '${this.#name}': ${message}${fix}`);
    });
  }

  async close(): Promise<void> {
    if (this.isLost) return;
    try {
      await this.#host.close(this.#region);
    } catch (thrown) {
      const { message } = StatusError.from(thrown);
      this.#log('error', `CUDA shared memory region '${this.#name}': ${message}`);
    }
  }
}

function notRegistered(name: string, thrown: unknown): StatusError {
  const reason = StatusError.from(thrown).message;
  return unavailable(`failed to register CUDA shared memory region '${name}': ${reason}`);
}

function stepsOf(span: Span): Span[] {
  const steps: Span[] = [];
  for (let done = 0; done < span.byteLength; done += SHM_STEP_BYTES_MAX) {
    const byteLength = Math.min(span.byteLength - done, SHM_STEP_BYTES_MAX);
    steps.push({ position: span.position + done, byteLength });
  }
  return steps;
}

/** The first `byteLength` bytes and the others, as views. */
export function splitBytes(data: TensorBytes, byteLength: number): [TensorBytes, TensorBytes] {
  let index = 0;
  let left = byteLength;
  while (index < data.length && data[index]!.length <= left) {
    left -= data[index]!.length;
    index++;
  }
  if (left === 0 || index === data.length) return [data.slice(0, index), data.slice(index)];
  const cut = data[index]!;
  return [
    [...data.slice(0, index), cut.subarray(0, left)],
    [cut.subarray(left), ...data.slice(index + 1)],
  ];
}
