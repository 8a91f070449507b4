// Which command starts the host of a model: the node host in this package, or the Python host with an interpreter that
// hosts/ finds. A backend that is neither ours nor `python` is a Python-based one when the backend directory has it.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostLanguageOf, unknownBackend } from './backends/index.ts';
import { callThreadCount } from './backends/llama/call-threads.ts';
import type { ModelConfig } from './domain/model-config.ts';
import { createPythonCommand } from './hosts/python-command.ts';
import { isFile } from './hosts/python-interpreter.ts';
import type { HostCommand, HostedModel } from './instance/host-process.ts';

const NODE_HOST = fileURLToPath(new URL('./host.js', import.meta.url));
const MEMORY_HOST = fileURLToPath(new URL('./memory-host.js', import.meta.url));
const PYTHON_HOST = fileURLToPath(new URL('../python/nereid_host/__main__.py', import.meta.url));

/** Of glibc: memory for large arrays asks Linux for pages of 2 MB. Other C libraries do not look at it. */
const LARGE_PAGES = 'glibc.malloc.hugetlb';

/** Threads of Node's pool, from which libllama is called; large pages for weights and KV cells (docs/adr/0010). */
function llamaEnvironment(config: ModelConfig): Readonly<Record<string, string>> {
  const given = process.env['GLIBC_TUNABLES'] ?? '';
  const tunables = given.includes(LARGE_PAGES)
    ? given
    : [given, `${LARGE_PAGES}=1`].filter(Boolean).join(':');
  return { UV_THREADPOOL_SIZE: String(callThreadCount(config)), GLIBC_TUNABLES: tunables };
}

/** Throws a StatusError when no backend of that name exists, or no interpreter for it. */
export async function hostCommandOf(model: HostedModel): Promise<HostCommand> {
  const { backend } = model.config;
  const language = hostLanguageOf(backend);
  if (language === 'node') {
    const args = [...typeScriptArgs(backend), NODE_HOST];
    return {
      file: process.execPath,
      args,
      ...(backend === 'llama' ? { env: llamaEnvironment(model.config) } : {}),
    };
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
