// Device memory through the CUDA driver: opens the handles that clients made, checks ranges, copies. Runs in the memory
// host alone; src/memory-host.ts hands it to memory-host-loop.ts. The server process must never import it.

import koffi from 'koffi';
import { internal, invalidArgument, StatusError, unavailable } from '../domain/status.ts';
import type { DeviceMemory } from './memory-host-loop.ts';
import type { MemoryOpenMessage } from './memory-host-protocol.ts';
import type { LogMessage } from './protocol.ts';

/** Of the driver, present wherever one is installed; nothing of the CUDA toolkit is needed. */
const LIBRARY = 'libcuda.so.1';
const IPC_HANDLE_BYTES = 64;
/** CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, as Triton opens handles. */
const LAZY_PEER_ACCESS = 1;
const INT32_MAX = 2 ** 31 - 1;

/** Each returns a CUresult. Out parameters are arrays of one. Device addresses are below 2^53. */
interface Driver {
  cuInit(flags: number): number;
  cuDeviceGet(device: number[], ordinal: number): number;
  cuDevicePrimaryCtxRetain(context: unknown[], device: number): number;
  cuCtxSetCurrent(context: unknown): number;
  cuCtxSynchronize(): number;
  cuIpcOpenMemHandle_v2(
    address: (number | bigint)[],
    handle: { reserved: Uint8Array },
    flags: number,
  ): number;
  cuIpcCloseMemHandle(address: bigint): number;
  cuMemGetAddressRange_v2(base: (number | bigint)[], bytes: (number | bigint)[], address: bigint): number;
  cuMemcpyDtoH_v2(target: Buffer, source: bigint, byteLength: number): number;
  cuMemcpyHtoD_v2(target: bigint, source: Buffer, byteLength: number): number;
  cuGetErrorString(result: number, text: (string | null)[]): number;
}

type TypeSpec = Parameters<typeof koffi.sizeof>[0];

interface OpenRegion {
  readonly context: unknown;
  readonly address: bigint;
  readonly byteSize: number;
}

export class CudaMemory implements DeviceMemory {
  readonly #log: (message: LogMessage) => void;
  readonly #regions = new Map<number, OpenRegion>();
  /** By device. */
  readonly #contexts = new Map<number, unknown>();
  #driver: Driver | undefined;

  constructor(log: (message: LogMessage) => void) {
    this.#log = log;
  }

  open(options: Omit<MemoryOpenMessage, 'id'>, handle: Buffer): void {
    const { region, name, deviceId, byteSize } = options;
    if (handle.length !== IPC_HANDLE_BYTES) throw invalidArgument(`a handle has ${IPC_HANDLE_BYTES} bytes`);
    const driver = this.#openDriver(name);
    const context = this.#openContext(driver, deviceId);
    const address = this.#openHandle(driver, handle);
    try {
      this.#requireSize(driver, { name, address, byteSize });
    } catch (thrown) {
      driver.cuIpcCloseMemHandle(address);
      throw thrown;
    }
    this.#regions.set(region, { context, address, byteSize });
  }

  /** A machine may get its driver while the server runs, so a failure is not kept. */
  #openDriver(name: string): Driver {
    if (this.#driver !== undefined) return this.#driver;
    const refused = `failed to register CUDA shared memory region '${name}'`;
    let driver: Driver;
    try {
      driver = loadDriver();
    } catch (thrown) {
      throw unavailable(`${refused}: ${LIBRARY} of the CUDA driver: ${StatusError.from(thrown).message}`);
    }
    const result = driver.cuInit(0);
    if (result !== 0)
      throw unavailable(`${refused}: the CUDA driver does not start: ${textOf(driver, result)}`);
    this.#driver = driver;
    return driver;
  }

  /** Makes the device's context the current one; the one that a client's runtime uses too. */
  #openContext(driver: Driver, deviceId: number): unknown {
    let context = this.#contexts.get(deviceId);
    if (context === undefined) {
      const device = [0];
      const created: unknown[] = [null];
      const isOrdinal = deviceId >= 0 && deviceId <= INT32_MAX;
      if (!isOrdinal) throw this.#invalidArgs(`there is no CUDA device ${deviceId}`);
      this.#check(driver, driver.cuDeviceGet(device, deviceId), `cannot open CUDA device ${deviceId}`);
      this.#check(
        driver,
        driver.cuDevicePrimaryCtxRetain(created, device[0]!),
        `cannot use CUDA device ${deviceId}`,
      );
      context = created[0];
      this.#contexts.set(deviceId, context);
    }
    this.#check(driver, driver.cuCtxSetCurrent(context), `cannot use CUDA device ${deviceId}`);
    return context;
  }

  #openHandle(driver: Driver, handle: Buffer): bigint {
    const address: (number | bigint)[] = [0];
    const result = driver.cuIpcOpenMemHandle_v2(address, { reserved: handle }, LAZY_PEER_ACCESS);
    this.#check(driver, result, 'failed to open CUDA IPC handle');
    return BigInt(address[0]!);
  }

  /** The handle stands for a whole allocation; a region may be a part of it, never more. */
  #requireSize(driver: Driver, region: { name: string; address: bigint; byteSize: number }): void {
    const base: (number | bigint)[] = [0];
    const bytes: (number | bigint)[] = [0];
    const result = driver.cuMemGetAddressRange_v2(base, bytes, region.address);
    const roomBytes = BigInt(base[0]!) + BigInt(bytes[0]!) - region.address;
    if (result === 0 && BigInt(region.byteSize) <= roomBytes) return;
    const reason = result === 0 ? `the allocation has ${roomBytes} bytes` : textOf(driver, result);
    this.#log({ level: 'error', message: `CUDA shared memory region '${region.name}': ${reason}` });
    throw invalidArgument(`failed to register shared memory region '${region.name}': invalid args`);
  }

  /** As in Triton the client is told little; the reason is in the log. */
  #check(driver: Driver, result: number, what: string): void {
    if (result !== 0) throw this.#invalidArgs(`${what}: ${textOf(driver, result)}`);
  }

  #invalidArgs(reason: string): StatusError {
    this.#log({ level: 'error', message: reason });
    return invalidArgument('failed to register shared memory region: invalid args');
  }

  close(region: number): void {
    const { driver, address } = this.#use(region, 0, 0);
    this.#regions.delete(region);
    const result = driver.cuIpcCloseMemHandle(address);
    if (result !== 0) throw internal(`failed to close CUDA IPC handle: ${textOf(driver, result)}`);
  }

  read(region: number, position: number, target: Buffer): void {
    const { driver, address } = this.#use(region, position, target.length);
    const result = driver.cuMemcpyDtoH_v2(target, address, target.length);
    if (result !== 0) throw internal(`failed to read CUDA shared memory: ${textOf(driver, result)}`);
  }

  write(region: number, position: number, source: Buffer): void {
    const { driver, address } = this.#use(region, position, source.length);
    const result = driver.cuMemcpyHtoD_v2(address, source, source.length);
    if (result !== 0) throw internal(`failed to write CUDA shared memory: ${textOf(driver, result)}`);
  }

  /** Makes the region's context the current one. The address is that of `position`. */
  #use(region: number, position: number, byteLength: number): { driver: Driver; address: bigint } {
    const open = this.#regions.get(region);
    if (this.#driver === undefined || open === undefined) throw internal(`no CUDA region ${region} is open`);
    if (position < 0 || position + byteLength > open.byteSize) {
      throw internal(`bytes ${position} to ${position + byteLength} are not in CUDA region ${region}`);
    }
    const result = this.#driver.cuCtxSetCurrent(open.context);
    if (result !== 0) throw internal(`cannot use CUDA: ${textOf(this.#driver, result)}`);
    return { driver: this.#driver, address: open.address + BigInt(position) };
  }

  /** An access to memory that is gone ends a context for good; every later call in it fails. */
  isUsable(): boolean {
    const driver = this.#driver;
    if (driver === undefined) return true;
    return [...this.#contexts.values()].every(
      (context) => driver.cuCtxSetCurrent(context) === 0 && driver.cuCtxSynchronize() === 0,
    );
  }
}

function loadDriver(): Driver {
  const library = koffi.load(LIBRARY);
  const handle = koffi.struct({ reserved: koffi.array('uint8_t', IPC_HANDLE_BYTES) });
  const int = koffi.out(koffi.pointer('int'));
  const pointer = koffi.out(koffi.pointer('void *'));
  const word = koffi.out(koffi.pointer('uint64_t'));
  const text = koffi.out(koffi.pointer('str'));
  const bind = (name: keyof Driver, parameters: readonly TypeSpec[]) =>
    library.func(name, 'int', [...parameters]) as (...values: unknown[]) => number;
  return {
    cuInit: bind('cuInit', ['uint']),
    cuDeviceGet: bind('cuDeviceGet', [int, 'int']),
    cuDevicePrimaryCtxRetain: bind('cuDevicePrimaryCtxRetain', [pointer, 'int']),
    cuCtxSetCurrent: bind('cuCtxSetCurrent', ['void *']),
    cuCtxSynchronize: bind('cuCtxSynchronize', []),
    cuIpcOpenMemHandle_v2: bind('cuIpcOpenMemHandle_v2', [word, handle, 'uint']),
    cuIpcCloseMemHandle: bind('cuIpcCloseMemHandle', ['uint64_t']),
    cuMemGetAddressRange_v2: bind('cuMemGetAddressRange_v2', [word, word, 'uint64_t']),
    cuMemcpyDtoH_v2: bind('cuMemcpyDtoH_v2', ['void *', 'uint64_t', 'size_t']),
    cuMemcpyHtoD_v2: bind('cuMemcpyHtoD_v2', ['uint64_t', 'void *', 'size_t']),
    cuGetErrorString: bind('cuGetErrorString', ['int', text]),
  };
}

function textOf(driver: Driver, result: number): string {
  const text: (string | null)[] = [null];
  driver.cuGetErrorString(result, text);
  return text[0] ?? `CUDA error ${result}`;
}
