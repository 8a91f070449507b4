// From how many threads of its host libllama is called: as the environment of the process has to say before it starts. Pure;
// imports nothing of libllama, since the server asks.

import type { ModelConfig } from '../../domain/model-config.ts';

/** Of one model. More of them than these only wait for each other (docs/adr/0010). */
export const CONTEXTS_MAX = 8;
/** Who asks for so many layers on a GPU means all of them. */
const ALL_LAYERS = 99;

/**
 * Built with OpenMP libllama has a team of threads for each thread that calls it, and idle teams spin for a while. With one thread
 * every decode comes from the same one: 104 instead of 64 tokens a second on two cores. A GPU that has all layers needs no teams,
 * and may compute in several contexts at once (plan-contexts.ts).
 */
export function callThreadCount({ parameters, instance_group }: ModelConfig): number {
  const told = Number(parameters['contexts']?.string_value ?? Number.NaN);
  if (told >= 1) return Math.min(told, CONTEXTS_MAX);
  const layers = parameters['gpu_layers']?.string_value;
  const isOnGpu = instance_group.some(({ kind }) => kind === 'KIND_GPU' || kind === 'KIND_MODEL');
  const hasAll = layers === undefined ? isOnGpu : Number(layers) < 0 || Number(layers) >= ALL_LAYERS;
  return hasAll ? CONTEXTS_MAX : 1;
}
