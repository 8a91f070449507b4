// The explicit table of backends that run in a node host. Loaded lazily, so a host pays only for its own.

import type { Backend } from '../backend/sdk.ts';
import { invalidArgument } from '../domain/status.ts';

const BACKENDS: Readonly<Record<string, () => Promise<Backend>>> = {
  onnxruntime: async () => (await import('./onnxruntime/onnxruntime-backend.ts')).onnxruntimeBackend,
  identity: async () => (await import('./identity/identity-backend.ts')).identityBackend,
};

export const BACKEND_NAMES: readonly string[] = Object.keys(BACKENDS);

export function isKnownBackend(name: string): boolean {
  return Object.hasOwn(BACKENDS, name);
}

export function findBackend(name: string): Promise<Backend> {
  if (!isKnownBackend(name)) throw unknownBackend(name);
  return BACKENDS[name]!();
}

export function unknownBackend(name: string): Error {
  return invalidArgument(
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.`,
  );
}
