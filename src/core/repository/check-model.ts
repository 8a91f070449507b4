// Checks one model as a load would: reads its config, tries every version it would serve in a real host, and
// explains what fails. Called by validate-command.ts, one model at a time.

import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { isEnsemble } from '../ensemble/load-ensemble.ts';
import {
  type CheckEnvironment,
  type CheckedVersion,
  checkVersion,
  describeModelFile,
} from '../model/check-version.ts';
import { checkEnsembleVersion, type OtherModels } from './check-ensemble.ts';
import { diagnose } from './diagnose/diagnose.ts';
import type { Explanation, FileSignature, FileTensor, ModelFacts } from './diagnose/explanation.ts';
import { routerWarnings } from './diagnose/router-warnings.ts';
import { directoryWarnings, servedWarnings } from './diagnose/warnings.ts';
import { type RepositoryConfig, readRepositoryConfig, readText } from './read-config.ts';
import { listVersion, type ModelDirectory, scanVersions, selectVersions } from './scan.ts';

export interface Problem {
  /** As the log of a server would show it. */
  readonly error: string;
  readonly explanation: Explanation;
}

export interface ModelReport {
  readonly name: string;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Explanation[];
  /** Of the newest version that loads; undefined when there is a problem. */
  readonly served: CheckedVersion | undefined;
  readonly servedVersions: readonly number[];
  readonly versionCount: number;
}

export interface ModelCheck extends CheckEnvironment {
  /** Names of the backends this program has. */
  readonly backends: readonly string[];
  readonly others: OtherModels;
}

export async function checkModel(directory: ModelDirectory, check: ModelCheck): Promise<ModelReport> {
  let found: RepositoryConfig;
  try {
    found = await readRepositoryConfig(directory, {
      isAutoComplete: check.isAutoComplete,
      modelConfigName: '',
    });
  } catch (thrown) {
    const facts = await gatherFacts(directory, check, { config: await readLoosely(directory) });
    const warnings = directoryWarnings(facts, []);
    return failed(facts, [problemOf(thrown, facts)], warnings);
  }
  const { config } = found;
  const facts = await gatherFacts(directory, check, { config });
  const { selected, missing } = selectVersions(found.versions, config.version_policy);
  const warnings = directoryWarnings(facts, selected.length === 0 ? [] : missing);
  if (selected.length === 0) {
    // Worded as control.ts words it.
    const reason = `at least one version must be available under the version policy of model '${directory.name}'`;
    return failed(facts, [problemOf(invalidArgument(reason), facts)], warnings);
  }
  const problems: Problem[] = [];
  let served: CheckedVersion | undefined;
  for (const version of selected) {
    const source = { config, version, modelDirectory: directory.path };
    try {
      served = isEnsemble(config)
        ? await checkEnsembleVersion(source, check.others)
        : await checkVersion(source, check);
    } catch (thrown) {
      const described = isEnsemble(config) ? undefined : await describeModelFile(source, check);
      const file = signatureOf(described);
      problems.push(problemOf(thrown, await gatherFacts(directory, check, { config, version, file })));
    }
  }
  if (served === undefined || problems.length > 0) return failed(facts, withoutRepeats(problems), warnings);
  return {
    name: directory.name,
    problems,
    warnings: [
      ...warnings,
      ...servedWarnings(served.config, served.labels, facts),
      ...routerWarnings(served.config, [...check.others.needs.keys()]),
    ],
    served,
    servedVersions: selected,
    versionCount: found.versions.length,
  };
}

function failed(
  facts: ModelFacts,
  problems: readonly Problem[],
  warnings: readonly Explanation[],
): ModelReport {
  const versionCount = facts.versions.length;
  return { name: facts.name, problems, warnings, served: undefined, servedVersions: [], versionCount };
}

function problemOf(thrown: unknown, facts: ModelFacts): Problem {
  const error = StatusError.from(thrown);
  return { error: error.describe(), explanation: diagnose(error, facts) };
}

/** A config that is wrong is wrong for every version; once is enough. */
function withoutRepeats(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [problem.error, problem])).values()];
}

/** A config that breaks a rule still tells what the user meant. */
async function readLoosely(directory: ModelDirectory): Promise<ModelConfig | undefined> {
  try {
    return parseModelConfig((await readText(join(directory.path, 'config.pbtxt'))) ?? '');
  } catch {
    // The parse error is the one being explained.
    return undefined;
  }
}

async function gatherFacts(
  directory: ModelDirectory,
  check: ModelCheck,
  known: { config: ModelConfig | undefined; version?: number; file?: FileSignature | undefined },
): Promise<ModelFacts> {
  const { name, path } = directory;
  const { versions, ignored } = await scanVersions(path);
  const version = known.version ?? versions[0];
  const versionDirectory = join(path, String(version));
  const entries = version === undefined ? [] : await listVersion(versionDirectory);
  const versionEntries = entries.map((entry) => entry.name).filter((entry) => !entry.startsWith('.'));
  const fileName = known.config?.default_model_filename || 'model.onnx';
  return {
    name,
    path,
    config: known.config,
    versions,
    ignored,
    modelEntries: (await listVersion(path)).map((entry) => entry.name),
    version,
    versionEntries,
    isLfsPointer: versionEntries.includes(fileName) && (await isLfsPointer(join(versionDirectory, fileName))),
    file: known.file,
    backends: check.backends,
    gpuIds: check.gpuIds,
  };
}

const LFS_OPENING = 'version https://git-lfs';

async function isLfsPointer(path: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return false;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LFS_OPENING.length), 0, LFS_OPENING.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === LFS_OPENING;
  } catch {
    // A directory: some model formats are.
    return false;
  } finally {
    await file.close();
  }
}

function signatureOf(described: ModelConfig | undefined): FileSignature | undefined {
  if (described === undefined || described.input.length === 0) return undefined;
  const canBatch = described.max_batch_size > 0;
  const tensorOf = (tensor: ModelConfig['input'][number] | ModelConfig['output'][number]): FileTensor => {
    const dims = tensor.reshape?.shape ?? tensor.dims;
    return { name: tensor.name, data_type: tensor.data_type, shape: canBatch ? [-1, ...dims] : dims };
  };
  // The backend completes in the reverse order of the file, as Triton does; people expect the file's own.
  return {
    inputs: described.input.map(tensorOf).reverse(),
    outputs: described.output.map(tensorOf).reverse(),
    canBatch,
  };
}
