// Loads one version of a model to see whether it would serve, and ends it again: the same steps as
// load-version.ts, with one instance per device in place of all of them. Only `nereid validate` calls it; when
// it returns, no host process is left.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { HostCommand } from '../../instance/host-process.ts';
import type { InstancePlacement } from '../../instance/instance.ts';
import { Instance } from '../../instance/instance.ts';
import type { LoadMessage } from '../../instance/protocol.ts';
import { isRouter } from '../router/load-router.ts';
import type { Labels } from './labels.ts';
import {
  groupInstances,
  type LoadEnvironment,
  loadMessageOf,
  startInstances,
  type VersionSource,
} from './load-version.ts';
import { placementsOf } from './placements.ts';

export type CheckEnvironment = Pick<
  LoadEnvironment,
  'isAutoComplete' | 'gpuIds' | 'coreCount' | 'backendConfigOf' | 'hostCommandOf'
>;

export interface CheckedVersion {
  /** As it would be served. */
  readonly config: ModelConfig;
  readonly labels: Labels;
  readonly instanceCount: number;
}

/** Throws what a load would throw. */
export async function checkVersion(
  source: VersionSource,
  environment: CheckEnvironment,
): Promise<CheckedVersion> {
  if (isRouter(source)) return { config: source.config, labels: new Map(), instanceCount: 0 };
  const command = await commandFor(source, environment);
  const grouped = groupInstances(source.config, environment);
  const placements = placementsOf(grouped, environment);
  const [first, ...others] = onePerDevice(placements);
  const tryPlacement = (placement: InstancePlacement | undefined) => {
    const load = { ...source, config: grouped };
    const instances =
      placement === undefined ? [] : [createInstance(command, loadMessageOf(load, environment, placement))];
    return startInstances(grouped, source, instances).finally(() =>
      Promise.all(instances.map((instance) => instance.stop())),
    );
  };
  const { config, labels } = await tryPlacement(first);
  for (const placement of others) await tryPlacement(placement);
  return { config, labels, instanceCount: placements.length };
}

/**
 * The config a backend makes of the model file alone, as if config.pbtxt said nothing of inputs and outputs;
 * undefined when the file cannot be opened or the backend does not complete.
 */
export async function describeModelFile(
  source: VersionSource,
  environment: CheckEnvironment,
): Promise<ModelConfig | undefined> {
  const { dynamic_batching: _dynamic, sequence_batching: _sequence, ...rest } = source.config;
  const bare: ModelConfig = { ...rest, max_batch_size: 0, input: [], output: [], batch_input: [] };
  const asking = { ...environment, isAutoComplete: true };
  let instance: Instance | undefined;
  try {
    const placement = {
      name: `${source.config.name}_0`,
      kind: 'KIND_CPU',
      deviceId: 0,
      threadCount: 1,
    } as const;
    const command = await commandFor(source, environment);
    instance = createInstance(command, loadMessageOf({ ...source, config: bare }, asking, placement));
    return await instance.load();
  } catch {
    // The load that failed before this one has told the reason.
    return undefined;
  } finally {
    await instance?.stop();
  }
}

function onePerDevice(placements: readonly InstancePlacement[]): InstancePlacement[] {
  const byDevice = new Map(
    placements.map((placement) => [`${placement.kind} ${placement.deviceId}`, placement]),
  );
  return [...byDevice.values()];
}

function commandFor(source: VersionSource, environment: CheckEnvironment): Promise<HostCommand> {
  const pythonSettings = environment.backendConfigOf('python');
  return environment.hostCommandOf({ ...source, pythonSettings, log() {} });
}

function createInstance(command: HostCommand, load: LoadMessage): Instance {
  return new Instance({
    command,
    load,
    events: {
      onReply() {},
      onPart() {},
      onCall() {},
      onCallCancel() {},
      onCallFlow() {},
      onRequestCancelled() {},
      onLost() {},
      onStateChange() {},
      onLog() {},
    },
  });
}
