// --cache-config → the response cache. Called once by server.ts, before models are loaded; refusals are worded as Triton's.

import { internal, invalidArgument, type StatusError } from '../../domain/status.ts';
import type { CacheStore } from './cache-store.ts';
import { ENTRY_OVERHEAD_BYTES, LocalStore } from './local-store.ts';
import { parseRedisSettings, redisWarnings } from './redis-settings.ts';
import { RedisStore } from './redis-store.ts';
import { ResponseCache, type ResponseCacheOptions } from './response-cache.ts';

export type CacheConfigs = ReadonlyMap<string, Readonly<Record<string, string>>>;

export interface OpenCacheOptions extends ResponseCacheOptions {
  /** By name; there may be one. */
  readonly configs: CacheConfigs;
  /** Where Triton would look for a cache that is not built in. */
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Undefined when no cache is configured; throws a StatusError when the server should not start. */
export async function openCache(options: OpenCacheOptions): Promise<ResponseCache | undefined> {
  const { configs } = options;
  if (configs.size > 1) {
    throw invalidArgument(
      'found multiple cache configurations, but only a single cache is currently supported',
    );
  }
  const [config] = configs;
  if (config === undefined) return undefined;
  const [name, settings] = config;
  return new ResponseCache(await openStore(name, settings, options), options);
}

async function openStore(
  name: string,
  settings: Readonly<Record<string, string>>,
  options: OpenCacheOptions,
): Promise<CacheStore> {
  if (name === 'local') return new LocalStore(parseLocalSize(settings.size));
  if (name === 'redis') {
    for (const warning of redisWarnings(settings)) options.logger.warn(warning);
    return RedisStore.open({ ...options, settings: parseRedisSettings(settings, options.environment) });
  }
  throw invalidArgument(
    `unable to find 'libtritoncache_${name}.so' for cache. Searched: ${options.directory}. The caches of this server are local and redis`,
  );
}

/** Triton's texts come from the C++ library; what they mean follows. */
export function parseLocalSize(text: string | undefined): number {
  if (text === undefined) {
    throw invalidArgument("Failed to initialize LocalCache: config didn't contain a valid 'size' field.");
  }
  const size = Number.parseInt(text, 10);
  if (Number.isNaN(size)) throw localRefusal(`stoull. 'size' must be a number of bytes, got '${text}'`);
  if (size < 0) throw localRefusal(`failed to allocate buffer. 'size' must not be negative, got '${text}'`);
  if (size <= ENTRY_OVERHEAD_BYTES) {
    throw localRefusal(
      `Could not initialize buffer in basic_managed_external_buffer constructor. 'size' is ${size} bytes, too few for any response`,
    );
  }
  return size;
}

function localRefusal(reason: string): StatusError {
  return internal(`Failed to initialize LocalCache: ${reason}`);
}
