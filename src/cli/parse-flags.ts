// argv → ServerOptions: reads each flag once, gives it its type and place, and checks what depends on more than
// one flag. Throws UsageError; the caller prints usage and message to stderr and exits 1.

import type { LogFormat, LogSettings } from '../lib/logger.ts';
import { type FlagValues, parseFlagValues } from './flag-values.ts';
import { findFlag } from './flags.ts';
import type {
  GrpcOptions,
  HttpOptions,
  ListenOptions,
  MetricsOptions,
  ModelControlMode,
  OpenAiOptions,
  RepositoryOptions,
  ServerOptions,
  SslOptions,
} from './options.ts';
import {
  groupSettings,
  parseCacheSetting,
  parseMetricsConfig,
  parsePattern,
  parseResource,
  parseRestricted,
  parseSetting,
  parseShmPrefixes,
} from './setting-values.ts';
import { traceOptions } from './trace-flags.ts';
import { badOption, UsageError } from './usage-error.ts';

const GRPC_RESTRICTED_PREFIX = 'triton-grpc-protocol-';

/** `argv` without the program's name and the subcommand. */
export function parseFlags(argv: readonly string[]): ServerOptions {
  const values = parseFlagValues(argv);
  const http = httpOptions(values);
  const options: ServerOptions = {
    serverId: values.text('id'),
    exitTimeoutSecs: Math.max(0, values.number('exit-timeout-secs')),
    repository: repositoryOptions(values),
    http,
    grpc: grpcOptions(values),
    openai: openAiOptions(values, http),
    metrics: metricsOptions(values, http),
    log: logSettings(values),
    trace: traceOptions(values),
    backendConfigs: backendConfigs(values),
    cacheConfigs: cacheConfigs(values),
    cacheDirectory: values.text('cache-directory'),
    rateLimit: {
      isExecutionCount: values.text('rate-limit').toLowerCase() === 'execution_count',
      resources: values.texts('rate-limit-resource').map(parseResource),
    },
    pinnedPoolBytes: values.number('pinned-memory-pool-byte-size'),
    isClientShmAllowed: values.boolean('allow-client-shm'),
    shmPrefixes: parseShmPrefixes(values.texts('shared-memory-allow')),
    warnings: warningsOf(values),
  };
  checkPorts(options);
  checkRepository(options.repository);
  return options;
}

/** As in Triton the backend directory is a setting for all backends. */
function backendConfigs(values: FlagValues): ServerOptions['backendConfigs'] {
  const directory = { name: '', key: 'backend-directory', value: values.text('backend-directory') };
  const settings = values
    .texts('backend-config')
    .map((text) => parseSetting('backend-config', text, 'backend'));
  return groupSettings([directory, ...settings]);
}

function repositoryOptions(values: FlagValues): RepositoryOptions {
  const controlMode = values.text('model-control-mode').toLowerCase() as ModelControlMode;
  const modelConfigName = values.text('model-config-name');
  if (/\s/.test(modelConfigName) || (values.has('model-config-name') && modelConfigName === '')) {
    throw badOption('model-config-name', 'Error: empty or whitespace in --model-config-name');
  }
  const isStrictConfig = values.boolean('strict-model-config') || values.has('disable-auto-complete-config');
  return {
    paths: unique([...values.texts('model-store'), ...values.texts('model-repository')]),
    controlMode,
    pollSecs: controlMode === 'poll' ? Math.max(0, values.number('repository-poll-secs')) : 0,
    loadModels: unique(values.texts('load-model')),
    isStrictReadiness: values.boolean('strict-readiness'),
    isExitOnError: values.boolean('exit-on-error'),
    isAutoComplete: !isStrictConfig,
    modelConfigName,
    loadConcurrency: Math.max(1, values.number('model-load-thread-count')),
    loadRetryCount: values.number('model-load-retry-count'),
  };
}

function httpOptions(values: FlagValues): HttpOptions {
  return {
    isAllowed: values.boolean('allow-http'),
    address: values.text('http-address'),
    port: values.number('http-port'),
    isPortReused: values.boolean('reuse-http-port'),
    headerForwardPattern: parsePattern(
      'http-header-forward-pattern',
      values.text('http-header-forward-pattern'),
    ),
    inputBytesMax: values.number('http-max-input-size'),
    restrictedApis: parseRestricted(values.texts('http-restricted-api'), {
      flag: 'http-restricted-api',
      what: 'api',
      headerPrefix: '',
    }),
    ssl: sslOptions(values, 'http'),
  };
}

function grpcOptions(values: FlagValues): GrpcOptions {
  const optional = (name: string) => (values.has(name) ? values.number(name) : undefined);
  return {
    isAllowed: values.boolean('allow-grpc'),
    address: values.text('grpc-address'),
    port: values.number('grpc-port'),
    isPortReused: values.boolean('reuse-grpc-port'),
    headerForwardPattern: parsePattern(
      'grpc-header-forward-pattern',
      values.text('grpc-header-forward-pattern'),
    ),
    restrictedProtocols: parseRestricted(values.texts('grpc-restricted-protocol'), {
      flag: 'grpc-restricted-protocol',
      what: 'protocol',
      headerPrefix: GRPC_RESTRICTED_PREFIX,
    }),
    ssl: sslOptions(values, 'grpc'),
    compressionLevel: values
      .text('grpc-infer-response-compression-level')
      .toLowerCase() as GrpcOptions['compressionLevel'],
    responsePoolMax: values.number('grpc-max-response-pool-size'),
    keepaliveTimeMs: values.number('grpc-keepalive-time'),
    keepaliveTimeoutMs: values.number('grpc-keepalive-timeout'),
    isKeepaliveWithoutCalls: values.boolean('grpc-keepalive-permit-without-calls'),
    pingsWithoutDataMax: values.number('grpc-http2-max-pings-without-data'),
    pingIntervalWithoutDataMsMin: values.number('grpc-http2-min-recv-ping-interval-without-data'),
    pingStrikesMax: values.number('grpc-http2-max-ping-strikes'),
    connectionAgeMsMax: optional('grpc-max-connection-age'),
    connectionAgeGraceMs: optional('grpc-max-connection-age-grace'),
  };
}

function openAiOptions(values: FlagValues, http: HttpOptions): OpenAiOptions {
  const isAllowed = values.has('openai-port');
  return {
    isAllowed,
    address: values.text('openai-address') || http.address,
    port: isAllowed ? values.number('openai-port') : 0,
    apiKeyFile: values.text('openai-api-key-file'),
  };
}

/** Asking for mutual TLS asks for TLS. */
function sslOptions(values: FlagValues, listener: 'http' | 'grpc'): SslOptions | undefined {
  const isMutual = values.boolean(`${listener}-use-ssl-mutual`);
  if (!isMutual && !values.boolean(`${listener}-use-ssl`)) return undefined;
  return {
    isMutual,
    serverCert: values.text(`${listener}-server-cert`),
    serverKey: values.text(`${listener}-server-key`),
    rootCert: values.text(`${listener}-root-cert`),
  };
}

function metricsOptions(values: FlagValues, http: HttpOptions): MetricsOptions {
  const isAllowed = values.boolean('allow-metrics');
  return {
    isAllowed,
    address: values.text('metrics-address') || http.address,
    port: values.number('metrics-port'),
    isGpuMetrics: isAllowed && values.boolean('allow-gpu-metrics'),
    isCpuMetrics: isAllowed && values.boolean('allow-cpu-metrics'),
    intervalMs: values.number('metrics-interval-ms'),
    config: parseMetricsConfig(values.texts('metrics-config')),
  };
}

function logSettings(values: FlagValues): LogSettings {
  const format = values.text('log-format');
  if (!isLogFormat(format)) {
    throw badOption(
      'log-format',
      `invalid argument for --log-format\nGot ${format}; it is one of: default, ISO8601.`,
    );
  }
  return {
    logFile: values.text('log-file'),
    isInfo: values.boolean('log-info'),
    isWarning: values.boolean('log-warning'),
    isError: values.boolean('log-error'),
    verboseLevel: values.number('log-verbose'),
    format,
  };
}

function isLogFormat(text: string): text is LogFormat {
  return text === 'default' || text === 'ISO8601';
}

function cacheConfigs(values: FlagValues): ServerOptions['cacheConfigs'] {
  const isOldFlag = values.has('response-cache-byte-size');
  if (isOldFlag && values.has('cache-config')) {
    throw new UsageError(
      'Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or the other.',
    );
  }
  if (isOldFlag) return new Map([['local', { size: values.text('response-cache-byte-size') }]]);
  return groupSettings(values.texts('cache-config').map(parseCacheSetting));
}

function warningsOf(values: FlagValues): string[] {
  const warnings: string[] = [];
  for (const name of values.given()) {
    const inert = findFlag(name)?.inert;
    if (inert !== undefined) warnings.push(`--${name} is accepted but has no effect: ${inert}`);
  }
  if (values.has('strict-model-config')) {
    warnings.push(
      "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
    );
  }
  if (values.has('response-cache-byte-size')) {
    warnings.push(
      "'--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with the " +
        "provided byte size for its config. Please use '--cache-config' instead. The equivalent --cache-config CLI args " +
        `would be: '--cache-config=local,size=${values.text('response-cache-byte-size')}'`,
    );
  }
  if (values.has('load-model') && values.text('model-control-mode').toLowerCase() !== 'explicit') {
    warnings.push('--load-model is accepted but has no effect: --model-control-mode is not explicit');
  }
  return warnings;
}

/** As Triton: the same text for each pair of services that would need the same socket. */
function checkPorts(options: ServerOptions): void {
  const services: readonly (readonly [string, ListenOptions])[] = [
    ['HTTP', options.http],
    ['GRPC', options.grpc],
    ['OpenAI', options.openai],
    ['metrics', options.metrics],
  ];
  const used = new Map<string, string>();
  for (const [service, { isAllowed, address, port }] of services) {
    if (!isAllowed || port === 0) continue;
    const socket = `${address}:${port}`;
    const other = used.get(socket);
    if (other !== undefined) {
      throw new UsageError(
        `The server cannot listen to ${other} requests and ${service} requests at the same address and port ${socket}`,
      );
    }
    used.set(socket, service);
  }
}

/** Triton finds these two when it makes the server, hence the form. */
function checkRepository({ paths, loadModels }: RepositoryOptions): void {
  const prefix = 'error: creating server: Invalid argument -';
  if (paths.length === 0) {
    throw new UsageError(
      `${prefix} --model-repository must be specified\nFor example: nereid --model-repository=/path/to/models`,
      { isUsageShown: false },
    );
  }
  if (loadModels.includes('*') && loadModels.length > 1) {
    throw new UsageError(
      `${prefix} Wildcard model name '*' must be the ONLY startup model if specified at all.`,
      { isUsageShown: false },
    );
  }
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
