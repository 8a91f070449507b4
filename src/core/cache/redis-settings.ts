// The settings of --cache-config redis,… as Triton's Redis cache names them, checked. Pure but for reading TLS files.
// redis-store.ts connects with the result.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REDIS_CONNECT_MS_MAX, REDIS_REPLY_MS_MAX } from '../../domain/limits.ts';
import { internal, invalidArgument } from '../../domain/status.ts';

export interface RedisTls {
  readonly ca: readonly Buffer[] | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
  readonly servername: string | undefined;
}

export interface RedisSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  readonly connectTimeoutMs: number;
  readonly replyTimeoutMs: number;
  /** 0: entries stay until Redis evicts them. */
  readonly ttlSecs: number;
  readonly tls: RedisTls | undefined;
}

type Settings = Readonly<Record<string, string>>;

const KNOWN: ReadonlySet<string> = new Set([
  'host',
  'port',
  'user',
  'password',
  'db',
  'connect_timeout',
  'socket_timeout',
  'ttl',
  'tls_enabled',
  'cert',
  'key',
  'cacert',
  'cacert_dir',
  'sni',
]);

/** Settings of Triton's connection pool; one connection takes all commands here. */
const INERT: ReadonlySet<string> = new Set(['pool_size', 'wait_timeout']);

const NO_ADDRESS =
  "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' and 'port' in the configuration " +
  '- e.g. tritonserver --cache-config redis,host=redis --cache-config redis,port=6379 --model-repository=/models ...';

/** Throws a StatusError when the server should not start with these. */
export function parseRedisSettings(settings: Settings, environment: NodeJS.ProcessEnv): RedisSettings {
  const { host, port } = settings;
  if (host?.includes(',')) {
    throw refusal(`'host' is '${host}'. Every setting has a --cache-config of its own`);
  }
  if (host === undefined || port === undefined) throw invalidArgument(NO_ADDRESS);
  return {
    host,
    port: wholeNumber(settings, 'port', { fallback: 0, min: 1, max: 65_535 }),
    user: settings.user ?? environment.TRITONCACHE_REDIS_USERNAME,
    password: settings.password ?? environment.TRITONCACHE_REDIS_PASSWORD,
    db: wholeNumber(settings, 'db', { fallback: 0, min: 0, max: 2 ** 31 - 1 }),
    connectTimeoutMs: timeoutMs(settings, 'connect_timeout', REDIS_CONNECT_MS_MAX),
    replyTimeoutMs: timeoutMs(settings, 'socket_timeout', REDIS_REPLY_MS_MAX),
    ttlSecs: wholeNumber(settings, 'ttl', { fallback: 0, min: 0, max: 2 ** 31 - 1 }),
    tls: settings.tls_enabled === 'true' ? readTls(settings) : undefined,
  };
}

/** One line for the log for each setting that does nothing. */
export function redisWarnings(settings: Settings): string[] {
  return Object.keys(settings).flatMap((name) => {
    if (INERT.has(name)) return [`--cache-config redis,${name} has no effect: there is one connection`];
    return KNOWN.has(name) ? [] : [`--cache-config redis,${name} is no setting of the Redis cache`];
  });
}

/** 0 is no limit in Triton's client; here a request never waits for ever. */
function timeoutMs(settings: Settings, name: string, fallback: number): number {
  const value = wholeNumber(settings, name, { fallback, min: 0, max: 60_000 });
  return value === 0 ? fallback : value;
}

function wholeNumber(
  settings: Settings,
  name: string,
  { fallback, min, max }: { fallback: number; min: number; max: number },
): number {
  const text = settings[name];
  if (text === undefined) return fallback;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw refusal(`'${name}' must be a whole number from ${min} to ${max}, got '${text}'`);
}

function readTls(settings: Settings): RedisTls {
  const directory = settings.cacert_dir;
  const ca = [
    ...(settings.cacert === undefined ? [] : [readFile(settings.cacert)]),
    ...(directory === undefined ? [] : listFiles(directory).map((name) => readFile(join(directory, name)))),
  ];
  return {
    ca: ca.length === 0 ? undefined : ca,
    cert: settings.cert === undefined ? undefined : readFile(settings.cert),
    key: settings.key === undefined ? undefined : readFile(settings.key),
    servername: settings.sni,
  };
}

function listFiles(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((file) => !file.isDirectory())
      .map((file) => file.name);
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

function unreadable(thrown: unknown): Error {
  return internal(
    `Failed to initialize RedisCache: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
  );
}

function refusal(reason: string): Error {
  return invalidArgument(`Failed to initialize RedisCache: ${reason}`);
}
