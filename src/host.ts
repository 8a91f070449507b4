// Entry of a host process: one model instance, its backend and nothing else. The server starts it with a socket
// on file descriptor 3. It must never outlive the server, whatever way that ends.

import { findBackend } from './backends/index.ts';
import { runHost } from './instance/host-loop.ts';
import { startNativeProcess } from './instance/native-process.ts';

runHost({
  socket: startNativeProcess(),
  findBackend,
  exit: (code) => process.exit(code),
});
