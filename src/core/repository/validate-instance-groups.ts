// The rules of `instance_group`, checked after its defaults are written (normalize-config.ts), when the
// machine's GPUs are known. Throws INVALID_ARG with Triton's texts.

import type { ModelConfig, ModelInstanceGroup } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

export function validateInstanceGroups(config: ModelConfig, machine: { gpuIds: readonly number[] }): void {
  if (config.ensemble_scheduling !== undefined) return;
  if (config.instance_group.length === 0) {
    throw invalidArgument(`must specify one or more 'instance group's for ${config.name}`);
  }
  for (const group of config.instance_group) {
    const problem = groupProblem(config, group, machine.gpuIds);
    if (problem !== undefined) {
      throw invalidArgument(`instance group ${group.name} of model ${config.name} ${problem}`);
    }
  }
}

function groupProblem(
  config: ModelConfig,
  group: ModelInstanceGroup,
  gpuIds: readonly number[],
): string | undefined {
  if (group.kind === 'KIND_GPU') {
    const problem = gpuProblem(group, gpuIds);
    if (problem !== undefined) return problem;
  } else if (group.kind === 'KIND_CPU' || group.kind === 'KIND_MODEL') {
    if (group.gpus.length > 0) return `has kind ${group.kind} but specifies one or more GPUs`;
  } else {
    return `has unexpected kind ${group.kind}`;
  }
  return group.profile.length > 0 && config.platform !== 'tensorrt_plan'
    ? 'specifies profile field which is only supported for TensorRT models'
    : undefined;
}

function gpuProblem(group: ModelInstanceGroup, gpuIds: readonly number[]): string | undefined {
  if (gpuIds.length === 0) return 'has kind KIND_GPU but no GPUs are available';
  if (group.gpus.length === 0) return 'has kind KIND_GPU but specifies no GPUs';
  const unknown = group.gpus.find((id) => !gpuIds.includes(id));
  if (unknown === undefined) return undefined;
  return (
    `specifies invalid or unsupported gpu id ${unknown}. GPUs with at least the minimum required ` +
    `CUDA compute compatibility of 6.000000 are: ${gpuIds.join(', ')}`
  );
}
