// From the name in a load call to what is to be loaded: the model's directory in a repository, or one made of the
// files that came with the call; its config and its versions. Any failure here is the poll failure clients know.

import type { ModelConfig } from '../../domain/model-config.ts';
import { internal, invalidArgument, StatusError } from '../../domain/status.ts';
import type { Logger } from '../../lib/logger.ts';
import { needsOf } from './dependencies.ts';
import { type FileOverride, type OverrideDirectory, writeOverride } from './file-override.ts';
import { type ConfigRules, type RepositoryConfig, readRepositoryConfig } from './read-config.ts';
import { fingerprintOf, type ModelDirectory, type RepositoryScan, scanRepositories } from './scan.ts';

export interface LoadOverride {
  readonly configJson: string | undefined;
  readonly files: readonly FileOverride[];
}

export const NO_OVERRIDE: LoadOverride = { configJson: undefined, files: [] };

export interface FoundModel extends RepositoryConfig {
  readonly directory: ModelDirectory;
  readonly fingerprint: string;
  /** Set when the directory was made of files that came with the call. */
  readonly override: OverrideDirectory | undefined;
}

export interface RepositoryAccess {
  readonly paths: readonly string[];
  readonly rules: ConfigRules;
  readonly logger: Logger;
  /** The `config` parameter of a load call is JSON; which JSON is the wire's matter. */
  parseConfigJson(text: string): ModelConfig;
}

export function isOverride(override: LoadOverride): boolean {
  return override.configJson !== undefined || override.files.length > 0;
}

export async function findModel(
  name: string,
  override: LoadOverride,
  access: RepositoryAccess,
): Promise<FoundModel> {
  let made: OverrideDirectory | undefined;
  try {
    const config =
      override.configJson === undefined ? undefined : access.parseConfigJson(override.configJson);
    if (override.files.length > 0) {
      if (config === undefined) {
        throw invalidArgument("Load parameter 'config' must be specified for model file override");
      }
      made = await writeOverride(name, override.files);
    }
    const directory = made ?? (await locate(name, access.paths));
    const fingerprint = await fingerprintOf(directory.path);
    const found = await readRepositoryConfig(directory, access.rules, config);
    for (const entry of found.ignored) {
      access.logger.warn(
        `ignore version directory '${entry}' of model '${name}': its name is not a version number`,
      );
    }
    return { ...found, directory, fingerprint, override: made };
  } catch (thrown) {
    await made?.remove();
    access.logger.error(`Poll failed for model directory '${name}': ${StatusError.from(thrown).message}`);
    throw internal(`failed to load '${name}', failed to poll from model repository`);
  }
}

/** Names of the models that a model needs; none when it cannot be read, for which the load has the reason. */
export async function readNeeds(
  name: string,
  override: LoadOverride,
  scan: RepositoryScan,
  access: RepositoryAccess,
): Promise<readonly string[]> {
  try {
    if (override.configJson !== undefined) return needsOf(access.parseConfigJson(override.configJson));
    const [directory, other] = scan.get(name) ?? [];
    if (directory === undefined || other !== undefined) return [];
    return needsOf((await readRepositoryConfig(directory, access.rules)).config);
  } catch {
    return [];
  }
}

async function locate(name: string, paths: readonly string[]): Promise<ModelDirectory> {
  const directories = (await scanRepositories(paths)).get(name) ?? [];
  if (directories.length > 1) {
    throw invalidArgument(`failed to poll model '${name}': not unique across all model repositories`);
  }
  const only = directories[0];
  if (only === undefined) throw invalidArgument(`no directory '${name}' in any model repository`);
  return only;
}

export function checkModelName(name: string): void {
  if (name === '.' || name === '..' || name.includes('/') || name.includes('\\')) {
    throw invalidArgument(
      `invalid model name '${name}', model name must not contain path traversal characters`,
    );
  }
}
