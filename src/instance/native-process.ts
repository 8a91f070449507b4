// The start of every process of ours that runs native code through koffi: its stacks, its signals, and its end with the
// server. Called first by host.ts and memory-host.ts, before any library is loaded.

import { Socket } from 'node:net';
import koffi from 'koffi';

const SOCKET_FD = 3;
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/** koffi calls native code on stacks of its own; libraries want what a thread usually has. */
const NATIVE_STACK_BYTES = 8 * 1024 * 1024;

/** The socket to the server. */
export function startNativeProcess(): Socket {
  // A terminal or a service manager signals the whole group; only the server decides when such a process ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  koffi.config({
    sync_stack_size: NATIVE_STACK_BYTES,
    async_stack_size: NATIVE_STACK_BYTES,
    resident_async_pools: 1,
  });
  try {
    dieWithParent();
  } catch {
    // musl or another libc name: the closing socket still ends us.
  }
  return new Socket({ fd: SOCKET_FD, readable: true, writable: true });
}

/** On Linux the kernel ends us with the server even while native code computes and nobody reads the socket. */
function dieWithParent(): void {
  if (process.platform !== 'linux') return;
  const parent = process.ppid;
  const libc = koffi.load('libc.so.6');
  libc.func('int prctl(int option, ulong a, ulong b, ulong c, ulong d)')(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (process.ppid !== parent) process.exit(0);
}
