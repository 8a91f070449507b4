// Which command starts the host of a backend. Every backend of today runs in a node host.

import { fileURLToPath } from 'node:url';
import { isKnownBackend, unknownBackend } from './backends/index.ts';
import type { HostCommand } from './instance/host-process.ts';

const NODE_HOST = fileURLToPath(new URL('./host.js', import.meta.url));

/** Throws a StatusError when no backend of that name exists. */
export function hostCommandOf(backend: string): HostCommand {
  if (!isKnownBackend(backend)) throw unknownBackend(backend);
  return { file: process.execPath, args: [NODE_HOST] };
}
