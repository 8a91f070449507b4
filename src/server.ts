// Puts the rooms together: options in, a running server out, and its orderly end. Only main.ts calls it.

import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { backendConfigOf, type ServerOptions } from './cli/options.ts';
import { openCache } from './core/cache/open-cache.ts';
import type { ResponseCache } from './core/cache/response-cache.ts';
import { ModelControl } from './core/control.ts';
import { infer } from './core/infer.ts';
import type { HostServices } from './core/model/host-calls.ts';
import type { LoadEnvironment } from './core/model/load-version.ts';
import { RateLimiter } from './core/rate-limiter/rate-limiter.ts';
import { Catalog, LATEST_VERSION } from './core/repository/catalog.ts';
import { SharedMemory } from './core/shm/shared-memory.ts';
import { MetricsRegistry } from './core/stats/metrics-registry.ts';
import { addSystemMetrics } from './core/stats/system-metrics.ts';
import { TraceControl } from './core/trace/trace-control.ts';
import { FRONTEND_CLOSE_MS_MAX } from './domain/limits.ts';
import { internal, invalidArgument, unavailable } from './domain/status.ts';
import { type GrpcFrontend, startGrpcFrontend } from './frontend/grpc/grpc-server.ts';
import { HTTP2_DEFAULTS } from './frontend/grpc/http2/http2-types.ts';
import type { GrpcServices } from './frontend/grpc/services.ts';
import { type HttpFrontend, startHttpFrontend, startRoutesFrontend } from './frontend/http/http-server.ts';
import type { HttpServices } from './frontend/http/services.ts';
import { JsonThread } from './frontend/json-thread.ts';
import { type MetricsFrontend, startMetricsFrontend } from './frontend/metrics/metrics-server.ts';
import { ApiKeys } from './frontend/openai/api-keys.ts';
import { createOpenAiRoutes } from './frontend/openai/openai-routes.ts';
import type { OpenAiServices } from './frontend/openai/services.ts';
import type { ServerServices } from './frontend/services.ts';
import { findLabelled } from './frontend/version-label.ts';
import { hostCommandOf, memoryHostCommand } from './host-command.ts';
import { systemClock } from './lib/clock.ts';
import { usableCoreCount } from './lib/core-count.ts';
import { findGpus } from './lib/gpu-devices.ts';
import type { Logger } from './lib/logger.ts';
import { printStartup } from './startup-tables.ts';
import { PROMETHEUS_CONTENT_TYPE, renderPrometheus } from './wire/prometheus.ts';
import { modelConfigFromJson } from './wire/v2-json/model-config-json.ts';

/** Triton's words when a start-up model does not load. */
export const LOAD_FAILURE = 'failed to load all models';

type Phase = 'starting' | 'serving' | 'exiting';

/** Pause between two looks at what still keeps the server from ending. */
const DRAIN_LOOK_MS = 1000;

export class NereidServer {
  readonly #options: ServerOptions;
  readonly #logger: Logger;
  readonly #registry = new MetricsRegistry(systemClock);
  readonly #catalog = new Catalog();
  readonly #control: ModelControl;
  readonly #sharedMemory: SharedMemory;
  readonly #trace: TraceControl;
  #cache: ResponseCache | undefined;
  #phase: Phase = 'starting';
  #http: HttpFrontend | undefined;
  #grpc: GrpcFrontend | undefined;
  #openai: HttpFrontend | undefined;
  readonly #jsonThread = new JsonThread();
  #apiKeys: ApiKeys | undefined;
  #metrics: MetricsFrontend | undefined;

  constructor(options: ServerOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
    this.#sharedMemory = new SharedMemory({
      isAllowed: options.isClientShmAllowed,
      allowedPrefixes: options.shmPrefixes,
      hasGpu: findGpus().length > 0,
      memoryHostCommand: memoryHostCommand(),
      log: (level, message) => logger.child('memory_host').write(level, message),
    });
    this.#trace = new TraceControl(options.trace, {
      logger: logger.child('tracer'),
      hasModel: (name) => this.#catalog.readyVersions(name).length > 0,
    });
    const { repository } = options;
    this.#control = new ModelControl({
      paths: repository.paths,
      mode: repository.controlMode,
      pollSecs: repository.pollSecs,
      loadModels: repository.loadModels,
      loadConcurrency: repository.loadConcurrency,
      loadRetryCount: repository.loadRetryCount,
      rules: { isAutoComplete: repository.isAutoComplete, modelConfigName: repository.modelConfigName },
      environment: createLoadEnvironment(options, {
        logger,
        registry: this.#registry,
        catalog: this.#catalog,
        hostServices: this.#hostServices(),
        responseCache: () => this.#cache,
      }),
      catalog: this.#catalog,
      parseConfigJson: modelConfigFromJson,
    });
  }

  /** Loads the models, then opens the listeners; throws when the server should not run. */
  async start(): Promise<void> {
    const { metrics, pinnedPoolBytes } = this.#options;
    const { intervalMs, isCpuMetrics } = metrics;
    addSystemMetrics({
      registry: this.#registry,
      clock: systemClock,
      intervalMs,
      isCpuMetrics,
      pinnedPoolBytes,
    });
    await requireDirectories(this.#options.repository.paths);
    await this.#openCache();
    const isAllLoaded = await this.#control.start();
    printStartup(this.#logger, this.#options, await this.#control.index(false));
    if (!isAllLoaded && this.#options.repository.isExitOnError) {
      throw internal(LOAD_FAILURE);
    }
    this.#phase = 'serving';
    await this.#listen();
  }

  async #openCache(): Promise<void> {
    this.#cache = await openCache({
      configs: this.#options.cacheConfigs,
      directory: this.#options.cacheDirectory,
      environment: process.env,
      clock: systemClock,
      logger: this.#logger.child('response_cache'),
      registry: this.#registry,
    });
  }

  async #listen(): Promise<void> {
    const { http, grpc, metrics } = this.#options;
    const log = this.#logger.child('http_server');
    if (grpc.isAllowed) {
      const http2 = { ...HTTP2_DEFAULTS, ...grpc };
      this.#grpc = await startGrpcFrontend(this.#grpcServices(), { ...grpc, tls: grpc.ssl, http2 });
      this.#logger
        .child('grpc_server')
        .info(`Started GRPCInferenceService at ${grpc.address}:${this.#grpc.port}`);
    }
    await this.#listenOpenAi();
    if (http.isAllowed) {
      this.#http = await startHttpFrontend(this.#httpServices(), http);
      log.info(`Started HTTPService at ${http.address}:${this.#http.port}`);
    }
    if (metrics.isAllowed) {
      this.#metrics = await startMetricsFrontend(metrics, this.#metricsSource());
      log.info(`Started Metrics Service at ${metrics.address}:${this.#metrics.port}`);
    }
  }

  /** The keys hold for /v1 of the HTTP port too, so they are read whether there is a port for it alone or not. */
  async #listenOpenAi(): Promise<void> {
    const { openai, http } = this.#options;
    const logger = this.#logger.child('openai_server');
    if (openai.apiKeyFile !== '') this.#apiKeys = await ApiKeys.open({ path: openai.apiKeyFile, logger });
    if (!openai.isAllowed) return;
    const routes = createOpenAiRoutes(this.#openAiServices(), { isAlone: true });
    const listen = { ...openai, isPortReused: false, ssl: http.ssl };
    this.#openai = await startRoutesFrontend({ routes, logger }, listen);
    logger.info(`Started OpenAI API at ${openai.address}:${this.#openai.port}`);
  }

  #metricsSource(): { contentType: string; render(): string } {
    return {
      contentType: PROMETHEUS_CONTENT_TYPE,
      render: () => renderPrometheus(this.#registry.collect()),
    };
  }

  #httpServices(): HttpServices {
    const { headerForwardPattern, inputBytesMax, restrictedApis } = this.#options.http;
    const furtherRoutes = createOpenAiRoutes(this.#openAiServices(), { isAlone: false });
    return {
      ...this.#services('http_server'),
      headerForwardPattern,
      inputBytesMax,
      restrictedApis,
      furtherRoutes,
    };
  }

  #openAiServices(): OpenAiServices {
    const { http, repository } = this.#options;
    return {
      ...this.#services('openai_server'),
      restrictedApis: http.restrictedApis,
      inputBytesMax: http.inputBytesMax,
      apiKeys: this.#apiKeys,
      repositoryPaths: repository.paths,
      metrics: this.#metricsSource(),
    };
  }

  #grpcServices(): GrpcServices {
    const { headerForwardPattern, restrictedProtocols, compressionLevel, responsePoolMax } =
      this.#options.grpc;
    return {
      ...this.#services('grpc_server'),
      headerForwardPattern,
      restrictedProtocols,
      compressionLevel,
      responsePoolMax,
      isStopping: () => this.#phase === 'exiting',
    };
  }

  #services(component: string): ServerServices {
    return {
      catalog: this.#catalog,
      logger: this.#logger.child(component),
      serverId: this.#options.serverId,
      sharedMemory: this.#sharedMemory,
      trace: this.#trace,
      jsonThread: this.#jsonThread,
      infer: (target, call) => infer(this.#catalog, target, call),
      isLive: () => this.#isLive(),
      isReady: () => this.#isLive() && this.#isReady(),
      index: (isReadyOnly) => this.#control.index(isReadyOnly),
      load: (model, override) => this.#control.load(model, override),
      unload: (model, isDependents) => this.#control.unload(model, isDependents),
    };
  }

  /** What models may ask for while they run. */
  #hostServices(): HostServices {
    return {
      registry: this.#registry,
      infer: (target, call) => infer(this.#catalog, target, call),
      isDecoupled: ({ model, version }) => this.#catalog.find(model, version).isDecoupled,
      load: (model, override) => this.#control.load(model, override),
      unload: (model, isDependents) => this.#control.unload(model, isDependents),
      isModelReady: (model, version) => {
        try {
          const labelled = findLabelled(this.#catalog, { model, version });
          const number = version === '' ? LATEST_VERSION : (labelled ?? Number(version));
          return this.#catalog.find(model, number).isHealthy;
        } catch {
          return false;
        }
      },
    };
  }

  #isLive(): boolean {
    if (this.#phase === 'exiting') throw unavailable('Server exiting');
    return true;
  }

  #isReady(): boolean {
    if (this.#phase !== 'serving') return false;
    return !this.#options.repository.isStrictReadiness || this.#catalog.isAllReady();
  }

  /**
   * Readiness goes false at once; what is in flight finishes, then the hosts end. False when the time ran out
   * and something was cut off.
   */
  async stop(): Promise<boolean> {
    this.#phase = 'exiting';
    this.#control.stop();
    this.#logger.info('Waiting for in-flight requests to complete.');
    const deadlineMs = systemClock.nowMs() + this.#options.exitTimeoutSecs * 1000;
    const look = setInterval(() => this.#logOpen(deadlineMs), DRAIN_LOOK_MS);
    const ended = this.#drain().then(() => true);
    const late = new Promise<boolean>((resolve) => {
      setTimeout(resolve, this.#options.exitTimeoutSecs * 1000, false).unref();
    });
    const isClean = await Promise.race([ended, late]);
    clearInterval(look);
    if (!isClean) this.#logger.error('Exit timeout expired. Exiting immediately.');
    this.abandon();
    await this.#trace.close();
    await this.#sharedMemory.close();
    await this.#control.cleanUp();
    return isClean;
  }

  async #drain(): Promise<void> {
    await this.#control.drain();
    const closed = Promise.all([this.#http?.close(), this.#openai?.close(), this.#grpc?.close()]);
    await Promise.race([closed, sleep(FRONTEND_CLOSE_MS_MAX)]);
  }

  #logOpen(deadlineMs: number): void {
    const open = this.#catalog.models().filter((model) => model.openCount > 0);
    const secs = Math.max(0, Math.round((deadlineMs - systemClock.nowMs()) / 1000));
    this.#logger.info(`Timeout ${secs}: Found ${open.length} model versions that have in-flight inferences`);
    for (const model of open) {
      this.#logger.info(
        `Model '${model.name}' (version ${model.version}) has ${model.openCount} in-flight inferences`,
      );
    }
  }

  /** Ends everything now; open requests are answered with an error. */
  abandon(): void {
    this.#phase = 'exiting';
    for (const model of this.#catalog.models()) model.abandon(unavailable('Server exiting'));
    this.#http?.destroy();
    this.#openai?.destroy();
    this.#apiKeys?.close();
    void this.#jsonThread.close();
    this.#grpc?.destroy();
    this.#metrics?.close();
    this.#cache?.close();
  }
}

/** A mistyped path must not become a server without models. */
async function requireDirectories(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const info = await stat(path).catch(() => undefined);
    if (info === undefined) throw internal(`failed to stat file ${path}`);
    if (!info.isDirectory()) throw invalidArgument(`model repository ${path} is not a directory`);
  }
}

function createLoadEnvironment(
  options: ServerOptions,
  parts: Pick<LoadEnvironment, 'logger' | 'registry' | 'catalog' | 'hostServices' | 'responseCache'>,
): LoadEnvironment {
  return {
    ...parts,
    clock: systemClock,
    metricsConfig: options.metrics.config,
    isAutoComplete: options.repository.isAutoComplete,
    gpuIds: findGpus(),
    coreCount: usableCoreCount(),
    delayedStartCount: Number(process.env.TRITONSERVER_DELAY_SCHEDULER ?? 0) || 0,
    delayedBacklogCount: Number(process.env.TRITONSERVER_BACKLOG_DELAY_SCHEDULER ?? 0) || 0,
    rateLimiter: options.rateLimit.isExecutionCount
      ? new RateLimiter({ limits: options.rateLimit.resources, defer: setImmediate })
      : undefined,
    backendConfigOf: (backend) => backendConfigOf(options, backend),
    hostCommandOf,
  };
}
