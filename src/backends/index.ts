// The explicit table of backends: those that run in a node host, loaded lazily, so a host pays only for its own, and
// those that run in a Python host.

import type { Backend } from '../backend/sdk.ts';
import { invalidArgument } from '../domain/status.ts';

const BACKENDS: Readonly<Record<string, () => Promise<Backend>>> = {
  onnxruntime: async () => (await import('./onnxruntime/onnxruntime-backend.ts')).onnxruntimeBackend,
  identity: async () => (await import('./identity/identity-backend.ts')).identityBackend,
  repeat: async () => (await import('./repeat/repeat-backend.ts')).repeatBackend,
  square: async () => (await import('./square/square-backend.ts')).squareBackend,
};

const PYTHON_BACKENDS: readonly string[] = ['python'];

export const BACKEND_NAMES: readonly string[] = [...Object.keys(BACKENDS), ...PYTHON_BACKENDS];

/** Throws a StatusError when no backend of that name exists. */
export function hostLanguageOf(name: string): 'node' | 'python' {
  if (Object.hasOwn(BACKENDS, name)) return 'node';
  if (PYTHON_BACKENDS.includes(name)) return 'python';
  throw unknownBackend(name);
}

/** A backend of the node host. */
export function findBackend(name: string): Promise<Backend> {
  const load = Object.hasOwn(BACKENDS, name) ? BACKENDS[name] : undefined;
  if (load === undefined) throw unknownBackend(name);
  return load();
}

function unknownBackend(name: string): Error {
  return invalidArgument(
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
  );
}
