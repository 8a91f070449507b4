// Whether a model is cached, and the wrapper around it when it is. Called by load-served.ts for models and ensembles, and by what
// makes their statistics, which have more series then. A router is never cached: it would measure only the misses.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { ServedModel } from '../model/served-model.ts';
import { type ScopeSource, scopeOf } from './cache-scope.ts';
import { CachedModel } from './cached-model.ts';
import type { ResponseCache } from './response-cache.ts';

/** Both the server and the model must say so. */
export function isCached(config: ModelConfig, cache: ResponseCache | undefined): boolean {
  return cache !== undefined && config.response_cache?.enable === true;
}

export async function withCache(
  model: ServedModel,
  source: ScopeSource,
  cache: ResponseCache | undefined,
): Promise<ServedModel> {
  // A config that says decoupled is refused before; an ensemble may be decoupled by its steps alone.
  if (cache === undefined || !isCached(model.config, cache) || model.isDecoupled) return model;
  return new CachedModel(model, { cache, scope: await scopeOf(source, cache.isShared) });
}
