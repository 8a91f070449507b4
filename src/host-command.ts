// Which command starts the host of a backend: the node host in this package, or the Python host with the user's own
// interpreter (NEREID_PYTHON, else python3).

import { statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostLanguageOf } from './backends/index.ts';
import { internal } from './domain/status.ts';
import type { HostCommand } from './instance/host-process.ts';

const NODE_HOST = fileURLToPath(new URL('./host.js', import.meta.url));
const MEMORY_HOST = fileURLToPath(new URL('./memory-host.js', import.meta.url));
const PYTHON_HOST = fileURLToPath(new URL('../python/nereid_host/__main__.py', import.meta.url));

/** Throws a StatusError when no backend of that name exists, or no interpreter for it. */
export function hostCommandOf(backend: string): HostCommand {
  if (hostLanguageOf(backend) === 'node') return { file: process.execPath, args: [NODE_HOST] };
  return { file: findPython(), args: [PYTHON_HOST] };
}

/** The process that opens CUDA memory of clients. */
export function memoryHostCommand(): HostCommand {
  return { file: process.execPath, args: [MEMORY_HOST] };
}

/** The interpreter as the user names it; looked for here, because a failed spawn says neither what nor why. */
function findPython(): string {
  const python = process.env.NEREID_PYTHON || 'python3';
  const isPath = /[/\\]/.test(python);
  const folders = isPath ? [''] : (process.env.PATH ?? '').split(delimiter);
  const endings = process.platform === 'win32' ? ['', '.exe'] : [''];
  const isFound = folders.some((folder) => endings.some((ending) => isFile(join(folder, python + ending))));
  if (isFound) return python;
  throw internal(
    `the Python interpreter '${python}' was not found; install Python 3.8 or newer, or name one with NEREID_PYTHON`,
  );
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
