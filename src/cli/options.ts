// ServerOptions: everything the command line decides, typed, checked and with its defaults. Made by
// parse-flags.ts; server.ts reads it and nothing below it does.

import type { MetricsConfig } from '../domain/metrics-config.ts';
import type { TraceOptions } from '../domain/trace-options.ts';
import type { LogSettings } from '../lib/logger.ts';

export const RESTRICTED_CATEGORIES = [
  'health',
  'metadata',
  'inference',
  'shared-memory',
  'model-config',
  'model-repository',
  'statistics',
  'trace',
  'logging',
] as const;

export type RestrictedCategory = (typeof RESTRICTED_CATEGORIES)[number];

/** The header, or for gRPC the metadata key, that a request to a restricted category must carry. */
export interface RestrictedAccess {
  readonly header: string;
  readonly value: string;
}

export type RestrictedApis = ReadonlyMap<RestrictedCategory, RestrictedAccess>;

export interface ListenOptions {
  readonly isAllowed: boolean;
  readonly address: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export interface HttpOptions extends ListenOptions {
  readonly isPortReused: boolean;
  /** Undefined: no header is forwarded. Tested against the name, anywhere in it. */
  readonly headerForwardPattern: RegExp | undefined;
  readonly inputBytesMax: number;
  readonly restrictedApis: RestrictedApis;
  /** Undefined: plain HTTP. */
  readonly ssl: SslOptions | undefined;
}

export interface GrpcOptions extends ListenOptions {
  readonly isPortReused: boolean;
  readonly headerForwardPattern: RegExp | undefined;
  /** Header names have the prefix `triton-grpc-protocol-`. */
  readonly restrictedProtocols: RestrictedApis;
  readonly ssl: SslOptions | undefined;
  readonly compressionLevel: 'none' | 'low' | 'medium' | 'high';
  readonly responsePoolMax: number;
  readonly keepaliveTimeMs: number;
  readonly keepaliveTimeoutMs: number;
  readonly isKeepaliveWithoutCalls: boolean;
  readonly pingsWithoutDataMax: number;
  readonly pingIntervalWithoutDataMsMin: number;
  readonly pingStrikesMax: number;
  /** Undefined: connections live as long as their client wants. */
  readonly connectionAgeMsMax: number | undefined;
  readonly connectionAgeGraceMs: number | undefined;
}

/** The listener of the OpenAI API alone; it speaks TLS when HTTP does. */
export interface OpenAiOptions extends ListenOptions {
  /** Empty: no key is asked for. */
  readonly apiKeyFile: string;
}

export interface SslOptions {
  readonly isMutual: boolean;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly rootCert: string;
}

export interface MetricsOptions extends ListenOptions {
  readonly isGpuMetrics: boolean;
  readonly isCpuMetrics: boolean;
  readonly intervalMs: number;
  readonly config: MetricsConfig;
}

export type ModelControlMode = 'none' | 'poll' | 'explicit';

export interface RepositoryOptions {
  readonly paths: readonly string[];
  readonly controlMode: ModelControlMode;
  /** 0 unless the mode is poll. */
  readonly pollSecs: number;
  /** Without repeats; `['*']` is all. */
  readonly loadModels: readonly string[];
  readonly isStrictReadiness: boolean;
  readonly isExitOnError: boolean;
  /** The backend may complete config.pbtxt from the model file. */
  readonly isAutoComplete: boolean;
  /** Empty: config.pbtxt. */
  readonly modelConfigName: string;
  readonly loadConcurrency: number;
  readonly loadRetryCount: number;
}

export interface RateLimitResource {
  readonly name: string;
  readonly count: number;
  /** -1: every device. */
  readonly device: number;
}

export interface RateLimitOptions {
  readonly isExecutionCount: boolean;
  readonly resources: readonly RateLimitResource[];
}

export interface ServerOptions {
  readonly serverId: string;
  readonly exitTimeoutSecs: number;
  readonly repository: RepositoryOptions;
  readonly http: HttpOptions;
  readonly grpc: GrpcOptions;
  readonly openai: OpenAiOptions;
  readonly metrics: MetricsOptions;
  readonly log: LogSettings;
  readonly trace: TraceOptions;
  /** By backend; the settings for all backends are under the empty name. Use backendConfigOf. */
  readonly backendConfigs: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** By cache name; empty when no cache is wanted. */
  readonly cacheConfigs: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Only named in a refusal: caches are part of the server. */
  readonly cacheDirectory: string;
  readonly rateLimit: RateLimitOptions;
  readonly pinnedPoolBytes: number;
  readonly isClientShmAllowed: boolean;
  /** Without leading slashes. Undefined: every key but those of other programs. */
  readonly shmPrefixes: readonly string[] | undefined;
  /** Lines for the log: deprecated flags, flags without effect. */
  readonly warnings: readonly string[];
}

/** The settings of one backend, those for all backends included; its own win. */
export function backendConfigOf(options: ServerOptions, backend: string): Readonly<Record<string, string>> {
  return { ...options.backendConfigs.get(''), ...options.backendConfigs.get(backend) };
}
