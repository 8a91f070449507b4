// The explicit table of backends: those that run in a node host, loaded lazily, so a host pays only for its own, and
// those that run in a Python host.

import type { Backend } from '../backend/sdk.ts';
import { invalidArgument } from '../domain/status.ts';

const BACKENDS: Readonly<Record<string, () => Promise<Backend>>> = {
  onnxruntime: async () => (await import('./onnxruntime/onnxruntime-backend.ts')).onnxruntimeBackend,
  identity: async () => (await import('./identity/identity-backend.ts')).identityBackend,
  llama: async () => (await import('./llama/llama-backend.ts')).llamaBackend,
  repeat: async () => (await import('./repeat/repeat-backend.ts')).repeatBackend,
  node: async () => (await import('./node/node-backend.ts')).nodeBackend,
  square: async () => (await import('./square/square-backend.ts')).squareBackend,
};

/** Beside models in Python those of frameworks, which python/nereid_host/adapters opens. */
const PYTHON_BACKENDS: readonly string[] = [
  'python',
  'pytorch',
  'tensorflow',
  'openvino',
  'tensorrt',
  'vllm',
  'tensorrtllm',
];

export const BACKEND_NAMES: readonly string[] = [...Object.keys(BACKENDS), ...PYTHON_BACKENDS];

/** Undefined when it is not one of ours; then the backend directory may hold a Python-based one. */
export function hostLanguageOf(name: string): 'node' | 'python' | undefined {
  if (Object.hasOwn(BACKENDS, name)) return 'node';
  return PYTHON_BACKENDS.includes(name) ? 'python' : undefined;
}

/** A backend of the node host. */
export function findBackend(name: string): Promise<Backend> {
  const load = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  if (load === undefined) throw unknownBackend(name);
  return load();
}

export function unknownBackend(name: string): Error {
  return invalidArgument(
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
  );
}
