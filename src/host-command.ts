// Which command starts the host of a model: the node host in this package, or the Python host with an interpreter that
// hosts/ finds. A backend that is neither ours nor `python` is a Python-based one when the backend directory has it.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostLanguageOf, unknownBackend } from './backends/index.ts';
import { createPythonCommand } from './hosts/python-command.ts';
import { isFile } from './hosts/python-interpreter.ts';
import type { HostCommand, HostedModel } from './instance/host-process.ts';

const NODE_HOST = fileURLToPath(new URL('./host.js', import.meta.url));
const MEMORY_HOST = fileURLToPath(new URL('./memory-host.js', import.meta.url));
const PYTHON_HOST = fileURLToPath(new URL('../python/nereid_host/__main__.py', import.meta.url));

/**
 * libllama built with OpenMP has a team of threads for each thread that calls it, and idle teams spin for a while. With one
 * thread in Node's pool every decode comes from the same one: 104 instead of 64 tokens a second on two cores.
 */
const HOST_ENVIRONMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  llama: { UV_THREADPOOL_SIZE: '1' },
};

/** Throws a StatusError when no backend of that name exists, or no interpreter for it. */
export async function hostCommandOf(model: HostedModel): Promise<HostCommand> {
  const { backend } = model.config;
  const language = hostLanguageOf(backend);
  if (language === 'node') {
    const env = HOST_ENVIRONMENTS[backend];
    const args = [...typeScriptArgs(backend), NODE_HOST];
    return { file: process.execPath, args, ...(env === undefined ? {} : { env }) };
  }
  const backendFile = language === 'python' ? undefined : findBackendFile(model);
  return createPythonCommand(model, { host: PYTHON_HOST, backend: backendFile });
}

/** Node 22.6 to 22.17 runs a model.ts only when told to; newer ones need no word, older ones cannot. */
function typeScriptArgs(backend: string): readonly string[] {
  if (backend !== 'node') return [];
  const isOn = Boolean((process.features as { typescript?: unknown }).typescript);
  const flag = '--experimental-strip-types';
  return !isOn && process.allowedNodeEnvironmentFlags.has(flag) ? [flag] : [];
}

/** The process that opens CUDA memory of clients. */
export function memoryHostCommand(): HostCommand {
  return { file: process.execPath, args: [MEMORY_HOST] };
}

/** The model.py that serves every model of a Python-based backend. */
function findBackendFile(model: HostedModel): string {
  const { backend } = model.config;
  const directory = model.pythonSettings['backend-directory'];
  // A name is a folder of the backend directory, never a way out of it.
  const isName = /^[^/\\]+$/.test(backend) && backend !== '..' && backend !== '.';
  const file = isName && directory !== undefined ? join(directory, backend, 'model.py') : '';
  if (file === '' || !isFile(file)) throw unknownBackend(backend);
  return file;
}
