// Entry of a host process: one model instance, its backend and nothing else. The server starts it with a socket
// on file descriptor 3. It must never outlive the server, whatever way that ends.

import { Socket } from 'node:net';
import koffi from 'koffi';
import { findBackend } from './backends/index.ts';
import { runHost } from './instance/host-loop.ts';

const SOCKET_FD = 3;
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

/** Native code runs on stacks of koffi's own; ONNX Runtime wants what a thread usually has. */
const NATIVE_STACK_BYTES = 8 * 1024 * 1024;

/** On Linux the kernel ends us with the server even while a model computes and nobody reads the socket. */
function dieWithParent(): void {
  if (process.platform !== 'linux') return;
  const parent = process.ppid;
  const libc = koffi.load('libc.so.6');
  libc.func('int prctl(int option, ulong a, ulong b, ulong c, ulong d)')(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (process.ppid !== parent) process.exit(0);
}

// A terminal or a service manager signals the whole group; only the server decides when a host ends.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});

// Must come before the first library is loaded.
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
runHost({
  socket: new Socket({ fd: SOCKET_FD, readable: true, writable: true }),
  findBackend,
  exit: (code) => process.exit(code),
});
