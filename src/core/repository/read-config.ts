// From a model directory to a config that is complete as far as no backend is needed: read or take the override,
// fill the backend fields, normalise, validate. What fails here fails the poll of the model, before any version.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal, invalidArgument } from '../../domain/status.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { completeBackend } from './complete-backend.ts';
import { normalizeConfig } from './normalize-config.ts';
import { listVersion, type ModelDirectory, scanVersions } from './scan.ts';
import { validateIoConfig, validateModelConfig } from './validate-config.ts';

export interface ConfigRules {
  readonly isAutoComplete: boolean;
  /** `--model-config-name`; empty for config.pbtxt. */
  readonly modelConfigName: string;
}

export interface RepositoryConfig {
  readonly config: ModelConfig;
  readonly versions: readonly number[];
  /** Directories beside the versions that are none. */
  readonly ignored: readonly string[];
}

export async function readRepositoryConfig(
  directory: ModelDirectory,
  rules: ConfigRules,
  override?: ModelConfig,
): Promise<RepositoryConfig> {
  const given = override ?? (await readConfigFile(directory, rules));
  const { versions, ignored } = await scanVersions(directory.path);
  const first = versions.map(String).sort()[0];
  const versionEntries = first === undefined ? undefined : await listVersion(join(directory.path, first));
  const completed = completeBackend(given, { modelName: directory.name, versionEntries });
  const config = normalizeConfig(completed);
  if (config.name !== directory.name) {
    throw invalidArgument(
      `unexpected directory name '${directory.name}' for model '${config.name}', directory name must equal model name`,
    );
  }
  validateModelConfig(config);
  if (!rules.isAutoComplete) validateIoConfig(config);
  // A router has no files, so it needs no version directory either.
  const isBare = config.router !== undefined && versions.length === 0;
  return { config, versions: isBare ? [1] : versions, ignored };
}

async function readConfigFile(directory: ModelDirectory, rules: ConfigRules): Promise<ModelConfig> {
  const paths = [join(directory.path, 'config.pbtxt')];
  if (rules.modelConfigName !== '') {
    paths.unshift(join(directory.path, 'configs', `${rules.modelConfigName}.pbtxt`));
  }
  for (const path of paths) {
    const text = await readText(path);
    if (text !== undefined) return parseModelConfig(text);
  }
  if (rules.isAutoComplete) return parseModelConfig('');
  throw internal(`failed to open text file for read ${paths.at(-1)}: No such file or directory`);
}

/** Undefined when there is no such file. */
export async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw internal(`failed to read ${path}: ${(thrown as Error).message}`);
  }
}
