// The rules of `router` and `version_labels`, which Triton does not have. Called by validate-config.ts; throws INVALID_ARG
// with a text that says what to write instead. Whether targets exist is no matter here: they may be loaded later.

import type { ModelConfig, ModelRouter, RouterCanary, RouterShadow } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { nameOf, ROUTER_PLATFORM } from '../router/router-policy.ts';

export { ROUTER_PLATFORM } from '../router/router-policy.ts';

/** Not a digit or sign in front, which would read as a number; nothing that a URL would have to escape. */
const LABEL = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const HEADER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

export function validateRouterConfig(config: ModelConfig): void {
  validateLabels(config);
  const { name, platform, router } = config;
  if (platform !== ROUTER_PLATFORM) {
    if (router === undefined) return;
    throw invalidArgument(`'router' is set for '${name}' whose platform is not '${ROUTER_PLATFORM}'`);
  }
  if (router === undefined) {
    throw invalidArgument(`'router' must be set for '${name}' whose platform is '${ROUTER_PLATFORM}'`);
  }
  validateSurroundings(config);
  const problem =
    targetProblem(router) ?? stickyProblem(router) ?? shadowProblem(router) ?? canaryProblem(router);
  if (problem !== undefined) throw invalidArgument(`${problem} for router '${name}'`);
}

function validateLabels({ name, version_labels: labels }: ModelConfig): void {
  for (const [label, version] of Object.entries(labels)) {
    if (!LABEL.test(label)) {
      throw invalidArgument(
        `version label '${label}' of '${name}' must begin with a letter and have letters, digits, '_', '-' and '.' only`,
      );
    }
    if (version < 0)
      throw invalidArgument(`version label '${label}' of '${name}' must be a version, not ${version}`);
  }
}

/** A router has no instances, so what is said of them would be ignored. */
function validateSurroundings(config: ModelConfig): void {
  const { name, dynamic_batching, sequence_batching, ensemble_scheduling } = config;
  if (config.backend !== '') throw invalidArgument(`router '${name}' must have no 'backend'`);
  const scheduler = dynamic_batching ?? sequence_batching ?? ensemble_scheduling;
  if (scheduler !== undefined)
    throw invalidArgument(`router '${name}' must have no scheduler; its targets have`);
  if (config.instance_group.length > 0)
    throw invalidArgument(`router '${name}' must have no 'instance_group'`);
  if (config.model_warmup.length > 0) throw invalidArgument(`router '${name}' must have no 'model_warmup'`);
  if (config.response_cache?.enable) {
    throw invalidArgument(`router '${name}' must have no 'response_cache'; its targets may have one`);
  }
}

function targetProblem({ target: targets }: ModelRouter): string | undefined {
  if (targets.length === 0) return "at least one 'target' must be given";
  const names = targets.map(nameOf);
  for (const [i, target] of targets.entries()) {
    if (target.model === '') return `target ${i} must have a 'model'`;
    const name = names[i]!;
    if (names.indexOf(name) !== i) return `two targets are named '${name}'; give each a 'name' of its own`;
    const problem = versionProblem(target.version, `target '${name}'`);
    if (problem !== undefined) return problem;
  }
  const isAnyWeight = targets.some(({ weight }) => weight > 0);
  return isAnyWeight ? undefined : "at least one target must have a 'weight' above 0";
}

function versionProblem(version: string, what: string): string | undefined {
  if (version === '' || /^[0-9]+$/.test(version) || LABEL.test(version)) return undefined;
  return `the version '${version}' of ${what} is neither a number nor a label`;
}

function stickyProblem({ sticky, force_header: forceHeader }: ModelRouter): string | undefined {
  for (const header of [sticky?.header, forceHeader === '' ? undefined : forceHeader]) {
    if (header !== undefined && !HEADER.test(header)) return `'${header}' is no header name`;
  }
  if (sticky === undefined) return undefined;
  if (sticky.parameter === '') return "'sticky' must name a parameter";
  const isGiven = (sticky.header ?? sticky.parameter) !== undefined || sticky.correlation_id === true;
  return isGiven ? undefined : "'sticky' must have 'header', 'parameter' or 'correlation_id: true'";
}

function shadowProblem({ shadow: shadows }: ModelRouter): string | undefined {
  const names = shadows.map(nameOf);
  for (const [i, shadow] of shadows.entries()) {
    const name = names[i]!;
    if (shadow.model === '') return `shadow ${i} must have a 'model'`;
    if (names.indexOf(name) !== i) return `two shadows are named '${name}'; give each a 'name' of its own`;
    const problem = versionProblem(shadow.version, `shadow '${name}'`) ?? percentProblem(shadow, name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function percentProblem({ percent }: RouterShadow, name: string): string | undefined {
  return percent >= 0 && percent <= 100 ? undefined : `'percent' of shadow '${name}' must be from 0 to 100`;
}

function canaryProblem({ canary: rules, target: targets }: ModelRouter): string | undefined {
  const names = targets.map(nameOf);
  const watched = rules.map(({ target }) => target);
  for (const [i, rule] of rules.entries()) {
    const named = `canary rule for '${rule.target}'`;
    if (!names.includes(rule.target)) return `a canary rule names '${rule.target}', which is no target`;
    if (!names.includes(rule.stable)) return `${named} names '${rule.stable}' as stable, which is no target`;
    if (watched.indexOf(rule.target) !== i) return `there are two canary rules for '${rule.target}'`;
    if (watched.includes(rule.stable)) return `${named} leads to '${rule.stable}', which has a rule itself`;
    const problem = boundProblem(rule);
    if (problem !== undefined) return `${named} ${problem}`;
  }
  return undefined;
}

function boundProblem({ max_error_rate: errorRate, max_p99_ms: p99Ms }: RouterCanary): string | undefined {
  if (!(errorRate >= 0 && errorRate <= 1)) return "must have a 'max_error_rate' from 0 to 1";
  if (!(p99Ms >= 0)) return "must have a 'max_p99_ms' above 0";
  return errorRate === 0 && p99Ms === 0 ? "must have 'max_error_rate' or 'max_p99_ms'" : undefined;
}
