// Entry of the memory host: the one process that opens CUDA memory of clients and copies from and to it for the
// server, so that no native code runs in there. The server starts it with a socket on file descriptor 3 at the first
// registration of such memory. It must never outlive the server.

import { CudaMemory } from './instance/memory-host-cuda.ts';
import { runMemoryHost } from './instance/memory-host-loop.ts';
import { startNativeProcess } from './instance/native-process.ts';

process.title = 'nereid-memory-host';
runMemoryHost({
  socket: startNativeProcess(),
  createMemory: (log) => new CudaMemory(log),
  exit: (code) => process.exit(code),
});
