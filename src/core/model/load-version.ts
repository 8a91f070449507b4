// Loads one version of a model: starts its hosts, lets the backend complete the config, validates the result,
// reads labels, warms up. All or nothing: when anything fails, no process is left behind.

import { join } from 'node:path';
import type { MetricsConfig } from '../../domain/metrics-config.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { unsupported } from '../../domain/status.ts';
import type { HostCommand, HostedModel } from '../../instance/host-process.ts';
import { Instance, type InstanceEvents } from '../../instance/instance.ts';
import type { LoadMessage } from '../../instance/protocol.ts';
import type { WarmupRun } from '../../instance/warmup-batch.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import type { ResponseCache } from '../cache/response-cache.ts';
import { isCached } from '../cache/with-cache.ts';
import type { RateLimiter } from '../rate-limiter/rate-limiter.ts';
import type { Catalog } from '../repository/catalog.ts';
import { normalizeConfig, normalizeInstanceGroups } from '../repository/normalize-config.ts';
import {
  validateInstanceGroups,
  validateIoConfig,
  validateModelConfig,
} from '../repository/validate-config.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import { queueBytesMaxOf } from '../scheduler/scheduler-policy.ts';
import type { MetricsRegistry } from '../stats/metrics-registry.ts';
import { ModelStats } from '../stats/model-stats.ts';
import { HostCalls, type HostServices } from './host-calls.ts';
import { type Labels, readLabels } from './labels.ts';
import { Model } from './model.ts';
import { instanceLimitsOf, placementsOf } from './placements.ts';
import { countWarmup, createWarmup } from './warmup.ts';

/** What loading needs of the server around it. */
export interface LoadEnvironment {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: MetricsRegistry;
  /** Where routers find their targets. */
  readonly catalog: Catalog;
  readonly metricsConfig: MetricsConfig;
  readonly isAutoComplete: boolean;
  readonly gpuIds: readonly number[];
  readonly coreCount: number;
  /** TRITONSERVER_DELAY_SCHEDULER */
  readonly delayedStartCount: number;
  /** TRITONSERVER_BACKLOG_DELAY_SCHEDULER */
  readonly delayedBacklogCount: number;
  /** Undefined with --rate-limit=off. */
  readonly rateLimiter: RateLimiter | undefined;
  /** Undefined when the server has none. */
  responseCache(): ResponseCache | undefined;
  /** What models may ask of the server while they run. */
  readonly hostServices: HostServices;
  backendConfigOf(backend: string): Readonly<Record<string, string>>;
  /** Throws a StatusError when no backend of that name exists, or the model's environment cannot be made. */
  hostCommandOf(model: HostedModel): Promise<HostCommand>;
}

/** Their packages run on a GPU where there is one. */
const GPU_BACKENDS: ReadonlySet<string> = new Set(['pytorch', 'tensorflow', 'tensorrt']);

export interface VersionSource {
  readonly config: ModelConfig;
  readonly version: number;
  readonly modelDirectory: string;
}

export async function loadVersion(source: VersionSource, environment: LoadEnvironment): Promise<Model> {
  const startMs = environment.clock.nowMs();
  // Before anything is started for a config with a wrong parameter.
  queueBytesMaxOf(source.config);
  const log = environment.logger.child(source.config.backend);
  const command = await environment.hostCommandOf({
    ...source,
    pythonSettings: environment.backendConfigOf('python'),
    log: (message) => log.info(`${source.config.name}: ${message}`),
  });
  const grouped = groupInstances(source.config, environment);
  const link = createLink(source, environment);
  const placements = placementsOf(grouped, environment);
  // Throws when one of them could never run; from here on they have to be killed to be forgotten.
  const admissions = environment.rateLimiter?.register(instanceLimitsOf(grouped), () =>
    link.scheduler?.onInstanceChange(),
  );
  const instances = placements.map(
    (placement, i) =>
      new Instance({
        command,
        load: loadMessageOf({ ...source, config: grouped }, environment, placement),
        events: link.events,
        admission: admissions?.[i],
      }),
  );
  try {
    const { config, labels, warmupRuns } = await startInstances(grouped, source, instances);
    const model = new Model({
      config,
      version: source.version,
      instances,
      labels,
      stats: new ModelStats({
        name: config.name,
        version: source.version,
        metricTags: config.metric_tags,
        config: environment.metricsConfig,
        isCached: isCached(config, environment.responseCache()),
        registry: environment.registry,
      }),
      clock: environment.clock,
      delayedStartCount: environment.delayedStartCount,
      delayedBacklogCount: environment.delayedBacklogCount,
    });
    link.scheduler = model.scheduler;
    countWarmup(model.stats, warmupRuns, environment.clock.wallMs());
    model.stats.setLoadDurationSecs((environment.clock.nowMs() - startMs) / 1000);
    return model;
  } catch (thrown) {
    for (const instance of instances) instance.kill();
    throw thrown;
  }
}

/**
 * The config with its instance groups worked out. Frameworks take a machine's GPUs by themselves, as in Triton; the
 * bundled ONNX Runtime is a CPU build, so it does only when another library is named.
 */
export function groupInstances(
  config: ModelConfig,
  environment: Pick<LoadEnvironment, 'gpuIds' | 'backendConfigOf'>,
): ModelConfig {
  const { gpuIds } = environment;
  const isAutoGpu =
    GPU_BACKENDS.has(config.backend) ||
    environment.backendConfigOf(config.backend)['library-path'] !== undefined;
  const grouped = normalizeInstanceGroups(config, { gpuCount: gpuIds.length, isAutoGpu });
  validateInstanceGroups(grouped, { gpuIds });
  return grouped;
}

/** The first instance completes the config; the others start from the finished one, side by side. */
export async function startInstances(
  given: ModelConfig,
  source: VersionSource,
  instances: readonly Instance[],
): Promise<{ config: ModelConfig; labels: Labels; warmupRuns: readonly WarmupRun[] }> {
  const [first, ...others] = instances;
  if (first === undefined) throw unsupported(`model '${given.name}' has no instance that takes requests`);
  const config = normalizeConfig(takeCompleted(given, await first.load()));
  validateModelConfig(config);
  validateIoConfig(config);
  const warmup = await createWarmup(config, source.modelDirectory);
  const labels = await readLabels(config, source.modelDirectory);
  const runs = await Promise.all([
    first.start(config, warmup),
    ...others.map(async (instance) => {
      await instance.load();
      return instance.start(config, warmup);
    }),
  ]);
  return { config, labels, warmupRuns: runs.flat() };
}

/** Core takes from a backend's completion only what Triton's core takes. */
function takeCompleted(given: ModelConfig, completed: ModelConfig): ModelConfig {
  const config: ModelConfig = {
    ...given,
    max_batch_size: completed.max_batch_size,
    input: completed.input,
    output: completed.output,
  };
  const hasScheduler = given.dynamic_batching ?? given.sequence_batching ?? given.ensemble_scheduling;
  if (hasScheduler === undefined && completed.dynamic_batching !== undefined) {
    config.dynamic_batching = completed.dynamic_batching;
  }
  if (completed.model_transaction_policy !== undefined) {
    config.model_transaction_policy = completed.model_transaction_policy;
  }
  return config;
}

export function loadMessageOf(
  source: VersionSource,
  environment: Pick<LoadEnvironment, 'isAutoComplete' | 'backendConfigOf'>,
  placement: LoadMessage['placement'],
): LoadMessage {
  return {
    backend: source.config.backend,
    modelName: source.config.name,
    version: source.version,
    modelDirectory: source.modelDirectory,
    versionDirectory: join(source.modelDirectory, String(source.version)),
    config: source.config,
    isAutoComplete: environment.isAutoComplete,
    backendConfig: environment.backendConfigOf(source.config.backend),
    placement,
  };
}

/** Instances exist before the model that will hear of their replies; this is the line between the two. */
function createLink(
  source: VersionSource,
  environment: LoadEnvironment,
): { events: InstanceEvents; scheduler: Scheduler | undefined } {
  const log = environment.logger.child(source.config.backend);
  const calls = new WeakMap<Instance, HostCalls>();
  const callsOf = (instance: Instance): HostCalls => {
    let found = calls.get(instance);
    if (found === undefined) {
      found = new HostCalls({
        services: environment.hostServices,
        instance,
        sendResult: (message, data) => instance.sendResult(message, data),
        ancestorsOf: (parent) => link.scheduler?.ancestorsOf(parent) ?? [],
      });
      calls.set(instance, found);
    }
    return found;
  };
  const link: { events: InstanceEvents; scheduler: Scheduler | undefined } = {
    scheduler: undefined,
    events: {
      onReply: (_instance, reply) => link.scheduler?.onReply(reply),
      onPart: (_instance, part) => link.scheduler?.onPart(part),
      onCall: (instance, call, payload) => callsOf(instance).onCall(call, payload),
      onCallCancel: (instance, callId) => callsOf(instance).onCancel(callId),
      onCallFlow: (instance, callId, isPaused) => callsOf(instance).onFlow(callId, isPaused),
      onRequestCancelled: (instance, batchId, request) =>
        calls.get(instance)?.onRequestCancelled(batchId, request),
      onLost: (instance, error) => {
        calls.get(instance)?.close();
        link.scheduler?.onLost(instance, error);
      },
      onStateChange: () => link.scheduler?.onInstanceChange(),
      onLog: (instance, level, message) =>
        log.write(level, `${source.config.name} ${instance.name}: ${message}`),
    },
  };
  return link;
}
