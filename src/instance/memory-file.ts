// A nameless file in memory, mapped by the server and by the host it starts: what one writes the other reads, at the price of
// a copy within memory. It cannot be made shorter by anybody once it is made (a seal), so that no access to it can end a
// process with SIGBUS, and it is not in the system's shared-memory folder, which containers keep small (docs/adr/0009).

import { createRequire } from 'node:module';
import type Koffi from 'koffi';

const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const F_ADD_SEALS = 1033;
const F_SEAL_SEAL = 1;
const F_SEAL_SHRINK = 2;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_FAILED = 2n ** 64n - 1n;
/** Since Linux 5.14; where it is missing, pages are made when they are first written. */
const MADV_POPULATE_WRITE = 23;

/**
 * Settings of glibc's allocator, without which the copies cost more than the socket: by default a freed payload goes back
 * to the kernel, and the next one is paid for page by page. Measured with bench/host-round-trip.mjs.
 */
const M_TRIM_THRESHOLD = -1;
const M_MMAP_THRESHOLD = -3;
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
const HEAP_PIECE_BYTES_MAX = 32 * 1024 * 1024;

export interface MemoryFile {
  readonly fd: number;
  /** All of the file. Nobody but its owner may keep a part of it: it is gone after `close`. */
  readonly bytes: Buffer;
  /** Makes all pages, on another thread. */
  populate(): Promise<void>;
  /** While pages are made the mapping stays. */
  close(): void;
}

/** Undefined where the system knows no such files. */
export function createMemoryFile(byteLength: number): MemoryFile | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const c = loadCalls();
    const fd = c.memfdCreate('nereid-slots', MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return undefined;
    const isMade =
      c.ftruncate(fd, byteLength) === 0 && c.fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK) === 0;
    const file = isMade ? mapMemoryFile(fd, byteLength) : undefined;
    if (file === undefined) c.close(fd);
    return file;
  } catch {
    // A libc without one of these (musl has no mallopt), or a system call that a sandbox forbids.
    return undefined;
  }
}

/** The file that was made in another process. */
export function mapMemoryFile(fd: number, byteLength: number): MemoryFile | undefined {
  const c = loadCalls();
  const { koffi } = c;
  const address = c.mmap(null, byteLength, PROT_READ_WRITE, MAP_SHARED, fd, 0);
  if (BigInt.asUintN(64, koffi.address(address)) === MAP_FAILED) return undefined;
  let populating: Promise<void> = Promise.resolve();
  return {
    fd,
    bytes: Buffer.from(koffi.view(address, byteLength)),
    populate() {
      populating = new Promise((resolve) => {
        c.madvise.async(address, byteLength, MADV_POPULATE_WRITE, () => resolve());
      });
      return populating;
    },
    close() {
      void populating.then(() => {
        c.munmap(address, byteLength);
        c.close(fd);
      });
    },
  };
}

type Calls = ReturnType<typeof declareCalls>;
let calls: Calls | undefined;

function loadCalls(): Calls {
  calls ??= declareCalls();
  return calls;
}

/** Loaded here: a server must start also where koffi has no library for the machine. */
function declareCalls() {
  const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi;
  const libc = koffi.load(null);
  const mallopt = libc.func('int mallopt(int option, int value)');
  mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
  mallopt(M_MMAP_THRESHOLD, HEAP_PIECE_BYTES_MAX);
  return {
    koffi,
    memfdCreate: libc.func('int memfd_create(const char *name, uint flags)'),
    ftruncate: libc.func('int ftruncate(int fd, int64_t length)'),
    fcntl: libc.func('int fcntl(int fd, int command, ulong argument)'),
    mmap: libc.func('void *mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset)'),
    munmap: libc.func('int munmap(void *address, size_t length)'),
    madvise: libc.func('int madvise(void *address, size_t length, int advice)'),
    close: libc.func('int close(int fd)'),
  };
}
