// `nereid validate`: checks a model repository, or one model, with the code that serves, and prints the report.
// Puts the rooms together as server.ts does; only main.ts calls it. The substance is core/repository/check-model.ts.

import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { BACKEND_NAMES } from './backends/index.ts';
import type { ValidateOptions } from './cli/command.ts';
import type { OtherModels } from './core/repository/check-ensemble.ts';
import { checkModel, type ModelCheck, type ModelReport } from './core/repository/check-model.ts';
import { needsOf } from './core/repository/dependencies.ts';
import { COLOURS, modelText, NO_COLOURS, totalText } from './core/repository/diagnose/report-text.ts';
import { readRepositoryConfig } from './core/repository/read-config.ts';
import { listVersion, type ModelDirectory, scanRepositories } from './core/repository/scan.ts';
import { hostCommandOf } from './host-command.ts';
import { usableCoreCount } from './lib/core-count.ts';
import { findGpus } from './lib/gpu-devices.ts';
import { printModelConfig } from './wire/pbtxt/print-model-config.ts';

const VERSION = /^[0-9]+$/;
const MODEL_FILE = /^model\.\w+$|\.onnx$/;
const CONFIG_RULES = { isAutoComplete: true, modelConfigName: '' };
const CLEAR_LINE = '\r\u001b[2K';

/** 0 when every model would be served, else 1. */
export async function validateRepository(command: ValidateOptions): Promise<number> {
  // With --print-config standard output is for the configs alone, so that it can be piped.
  const page = command.isPrintConfig ? process.stderr : process.stdout;
  // A reader such as head may leave early; the exit code still tells the result.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const models = await findModels(command.directory);
  if (typeof models === 'string') {
    page.write(`${models}\n`);
    return 1;
  }
  const reportOf = await createReports(models, command.backendDirectory);
  const isColoured = page.isTTY && !process.env.NO_COLOR;
  const nameWidth = Math.max(...models.map((model) => model.name.length));
  const layout = { nameWidth, paint: isColoured ? COLOURS : NO_COLOURS };
  const reports: ModelReport[] = [];
  for (const model of models) {
    if (page.isTTY) page.write(`checking ${model.name} (${reports.length + 1} of ${models.length}) …`);
    const report = await reportOf(model);
    reports.push(report);
    page.write(`${page.isTTY ? CLEAR_LINE : ''}${modelText(report, layout)}`);
    if (command.isPrintConfig && report.served !== undefined) {
      process.stdout.write(`# ${model.name}/config.pbtxt\n${printModelConfig(report.served.config)}\n`);
    }
  }
  page.write(totalText(reports));
  return reports.every((report) => report.problems.length === 0) ? 0 : 1;
}

/** The models of a repository, or the one model whose directory was given; a text when there is none. */
async function findModels(directory: string): Promise<ModelDirectory[] | string> {
  const info = await stat(directory).catch(() => undefined);
  if (info === undefined) return `${directory} does not exist`;
  if (!info.isDirectory())
    return `${directory} is a file; give the model's directory or the repository above it`;
  const path = directory.replace(/(?<=.)\/+$/, '');
  const entries = await listVersion(path);
  const name = basename(resolve(path));
  const hasModelFile = entries.some((entry) => MODEL_FILE.test(entry.name));
  if (hasModelFile && VERSION.test(name)) {
    return `${directory} is a version of a model; validate the model: nereid validate ${dirname(resolve(path))}`;
  }
  const isModel = entries.some(
    (entry) => entry.name === 'config.pbtxt' || (entry.isDirectory && VERSION.test(entry.name)),
  );
  if (isModel || hasModelFile) return [{ name, path }];
  const models = [...(await scanRepositories([path])).values()].flat();
  if (models.length > 0) return models;
  return (
    `${directory} holds no model. A repository looks like this:\n` +
    '  <repository>/<model>/config.pbtxt      may be left out for ONNX models\n' +
    '  <repository>/<model>/1/model.onnx'
  );
}

/** Reports, each made once: ensembles ask for those of their models, also of ones that are not to be shown. */
async function createReports(
  shown: readonly ModelDirectory[],
  backendDirectory: string | undefined,
): Promise<(model: ModelDirectory) => Promise<ModelReport>> {
  const beside = await scanRepositories([...new Set(shown.map((model) => dirname(resolve(model.path))))]);
  const needs = new Map<string, readonly string[]>();
  for (const [name, [model]] of beside) needs.set(name, await readNeedsOf(model!));
  const reports = new Map<string, Promise<ModelReport>>();
  const reportOf = (model: ModelDirectory): Promise<ModelReport> => {
    let report = reports.get(model.name);
    if (report === undefined) {
      report = checkModel(model, check);
      reports.set(model.name, report);
    }
    return report;
  };
  const check = createCheck(
    {
      needs,
      reportOf: async (name) => {
        const model = shown.find((one) => one.name === name) ?? beside.get(name)?.[0];
        return model === undefined ? undefined : reportOf(model);
      },
    },
    backendDirectory,
  );
  return reportOf;
}

/** None of a model that cannot be read; its own report says why. */
async function readNeedsOf(model: ModelDirectory): Promise<readonly string[]> {
  try {
    return needsOf((await readRepositoryConfig(model, CONFIG_RULES)).config);
  } catch {
    return [];
  }
}

function createCheck(others: OtherModels, backendDirectory: string | undefined): ModelCheck {
  const settings = backendDirectory === undefined ? {} : { 'backend-directory': backendDirectory };
  return {
    others,
    isAutoComplete: true,
    gpuIds: findGpus(),
    coreCount: usableCoreCount(),
    backends: BACKEND_NAMES,
    backendConfigOf: () => settings,
    hostCommandOf,
  };
}
