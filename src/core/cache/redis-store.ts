// The Redis cache: entries in a Redis or Valkey server that several servers may share. A Redis that is down, slow or full costs
// only the cache: look-ups then find nothing at once, one warning is logged per outage, and a new connection is tried each
// second. The connection is this file's own to make again, so that there is one way back: connect, log in, PING.

import { REDIS_ENTRY_BYTES_MAX, REDIS_RETRY_MS } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import type { CancelTimer, Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { DigestName } from './cache-key.ts';
import type { CacheStore } from './cache-store.ts';
import type { RedisSettings } from './redis-settings.ts';

type RedisPackage = typeof import('@redis/client');
type Client = ReturnType<typeof makeClient>;

export interface RedisStoreOptions {
  readonly settings: RedisSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class RedisStore implements CacheStore {
  readonly isShared = true;
  readonly entryBytesMax = REDIS_ENTRY_BYTES_MAX;
  readonly #settings: RedisSettings;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #redis: RedisPackage;
  readonly #address: string;
  /** Connected and answering; undefined during an outage. */
  #client: Client | undefined;
  #isOutageLogged = false;
  #isRefusalLogged = false;
  #cancelRetry: CancelTimer | undefined;
  #isClosed = false;

  private constructor(options: RedisStoreOptions, redis: RedisPackage) {
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#log = options.logger;
    this.#redis = redis;
    this.#address = `${options.settings.host}:${options.settings.port}`;
  }

  /** Resolves after the first attempt to connect, whatever came of it; throws when the client package is missing. */
  static async open(options: RedisStoreOptions): Promise<RedisStore> {
    const store = new RedisStore(options, await loadPackage());
    await store.#connect();
    return store;
  }

  async find(scope: string, digest: DigestName): Promise<Buffer | undefined> {
    const client = this.#client;
    if (client === undefined) return undefined;
    try {
      return (await this.#inTime(client.get(nameOf(scope, digest)))) ?? undefined;
    } catch (thrown) {
      this.#lose(client, thrown);
      return undefined;
    }
  }

  has(): boolean {
    return false;
  }

  async put(scope: string, digest: DigestName, entry: Buffer): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    const { ttlSecs } = this.#settings;
    const expiration = ttlSecs === 0 ? {} : { expiration: { type: 'EX', value: ttlSecs } as const };
    try {
      await client.set(nameOf(scope, digest), entry, expiration);
      this.#isRefusalLogged = false;
    } catch (thrown) {
      if (thrown instanceof this.#redis.ErrorReply) this.#logRefusal(thrown);
      else this.#lose(client, thrown);
    }
  }

  /** Other servers may serve the same model, and Redis has its own ways to forget (ttl, maxmemory-policy). */
  forget(): void {}

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry?.();
    this.#client?.destroy();
    this.#client = undefined;
  }

  async #connect(): Promise<void> {
    const client = makeClient(this.#redis, this.#settings);
    // Without a listener an error of the socket would end the process.
    client.on('error', (error: unknown) => this.#lose(client, error));
    try {
      await this.#inTime(client.connect(), this.#settings.connectTimeoutMs);
      await this.#inTime(client.ping());
    } catch (thrown) {
      end(client);
      this.#outage(thrown);
      return;
    }
    if (this.#isClosed) {
      end(client);
      return;
    }
    this.#client = client;
    this.#log.info(`Successfully connected to Redis at ${this.#address}`);
    this.#isOutageLogged = false;
  }

  /** The connection failed, or did not answer in time. Everything that waits on it finds nothing. */
  #lose(client: Client, reason: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    end(client);
    this.#outage(reason);
  }

  #outage(reason: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isOutageLogged) {
      this.#isOutageLogged = true;
      this.#log.warn(
        `Redis at ${this.#address} is not available: ${textOf(reason)}. Requests are executed without the response cache until it is back`,
      );
    }
    this.#cancelRetry = this.#clock.setTimer(REDIS_RETRY_MS, () => void this.#connect());
  }

  #logRefusal(error: Error): void {
    if (this.#isRefusalLogged) return;
    this.#isRefusalLogged = true;
    this.#log.warn(`Redis at ${this.#address} did not store a response: ${error.message}`);
  }

  #inTime<T>(reply: Promise<T>, msMax: number = this.#settings.replyTimeoutMs): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.setTimer(msMax, () => reject(new Error(`no answer within ${msMax} ms`)));
      reply.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}

async function loadPackage(): Promise<RedisPackage> {
  try {
    return await import('@redis/client');
  } catch (thrown) {
    throw internal(
      `Failed to initialize RedisCache: its client is not installed (npm install @redis/client): ${textOf(thrown)}`,
    );
  }
}

function makeClient(redis: RedisPackage, settings: RedisSettings) {
  const { host, port, user, password, db, connectTimeoutMs, tls } = settings;
  const place = { host, port, connectTimeout: connectTimeoutMs, reconnectStrategy: false } as const;
  const secure = {
    ...place,
    tls: true,
    ...(tls?.ca === undefined ? {} : { ca: [...tls.ca] }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
    ...(tls?.servername === undefined ? {} : { servername: tls.servername }),
  } as const;
  return redis
    .createClient({
      socket: tls === undefined ? place : secure,
      ...(user === undefined ? {} : { username: user }),
      ...(password === undefined ? {} : { password }),
      database: db,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
    })
    .withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer });
}

function nameOf(scope: string, digest: DigestName): string {
  return `nereid:${scope}:${digest}`;
}

function end(client: Client): void {
  try {
    client.destroy();
  } catch {
    // It was never connected, or has ended by itself.
  }
}

function textOf(reason: unknown): string {
  if (reason instanceof AggregateError) return reason.errors.map(textOf).join(', ');
  return reason instanceof Error ? reason.message || reason.name : String(reason);
}
