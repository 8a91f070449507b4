// Loads a router: no process, no file but its config. Called by load-served.ts.

import type { LoadEnvironment, VersionSource } from '../model/load-version.ts';
import type { ServedModel } from '../model/served-model.ts';
import { ModelStats } from '../stats/model-stats.ts';
import { RouterMemory } from './router-memory.ts';
import { RouterMetrics } from './router-metrics.ts';
import { RouterModel } from './router-model.ts';
import { ROUTER_PLATFORM, toRouterPolicy } from './router-policy.ts';
import type { RouterLog } from './router-target.ts';

export function isRouter({ config }: Pick<VersionSource, 'config'>): boolean {
  return config.platform === ROUTER_PLATFORM;
}

export function loadRouter(source: VersionSource, environment: LoadEnvironment): ServedModel {
  const { config, version } = source;
  const { catalog, clock, registry } = environment;
  if (config.router === undefined) throw new Error(`'${config.name}' was not validated`);
  const logger = environment.logger.child('router');
  const prefix = `router '${config.name}': `;
  const log: RouterLog = {
    warn: (text) => logger.warn(prefix + text),
    info: (text) => logger.info(prefix + text),
  };
  const before = catalog.records(config.name).get(version)?.model;
  const policy = toRouterPolicy(config.router);
  const router = new RouterModel({
    config,
    version,
    policy,
    catalog,
    clock,
    log,
    stats: new ModelStats({
      name: config.name,
      version,
      metricTags: config.metric_tags,
      config: environment.metricsConfig,
      isCached: false,
      registry,
    }),
    metrics: new RouterMetrics(registry, config.name),
    memory: before instanceof RouterModel ? before.memory : new RouterMemory(),
    random: Math.random,
  });
  log.info(`loaded with ${policy.targets.map(({ name, weight }) => `${name} ${weight}`).join(', ')}`);
  return router;
}
