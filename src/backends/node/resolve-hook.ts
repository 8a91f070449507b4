// Makes `nereid/model` mean this package's SDK, wherever on disk a model lies and whatever its node_modules hold.
// Registered by import-model.ts; older Node runs it on a thread of its own, so it imports nothing of ours.

const SPECIFIER = 'nereid/model';
const SDK_URL = new URL('../../backend/model-sdk/index.js', import.meta.url).href;

interface Resolved {
  readonly url: string;
  readonly shortCircuit?: boolean;
}

export function resolve(
  specifier: string,
  context: unknown,
  nextResolve: (specifier: string, context: unknown) => Resolved | Promise<Resolved>,
): Resolved | Promise<Resolved> {
  if (specifier === SPECIFIER) return { url: SDK_URL, shortCircuit: true };
  return nextResolve(specifier, context);
}
