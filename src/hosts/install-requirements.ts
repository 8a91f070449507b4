// The packages of a requirements.txt beside a model.py: a venv of their own on top of the interpreter's packages,
// made once per content of the file and interpreter. Called by python-command.ts when the user allows it.
//
// Not `--system-site-packages`: where the interpreter is itself a venv, that means the packages of the Python it was made
// from. A .pth file names the interpreter's own, so that numpy and other large ones are not fetched again.

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { internal } from '../domain/status.ts';
import { cachedFolder } from './cached-folder.ts';
import { type Interpreter, interpreterIn } from './python-interpreter.ts';
import { type CommandResult, lastLines, runCommand } from './run-command.ts';

export interface Requirements {
  readonly modelName: string;
  /** The path of requirements.txt. */
  readonly file: string;
  readonly interpreter: Interpreter;
  log(message: string): void;
}

interface InterpreterFacts {
  /** Of the language and the build. */
  readonly version: string;
  readonly prefix: string;
  readonly packageFolders: readonly string[];
}

const ASK_FACTS =
  'import json, site, sys; print(json.dumps({"version": sys.version, "prefix": sys.prefix, "packageFolders": site.getsitepackages()}))';
const ASK_PACKAGE_FOLDER = 'import sysconfig; print(sysconfig.get_path("purelib"))';
const PIP_INSTALL =
  '-m pip install --no-input --disable-pip-version-check --no-warn-script-location --progress-bar off';
const ERROR_LINES_MAX = 8;

/** The interpreter that has them; throws a StatusError with pip's last lines when they cannot be installed. */
export async function installRequirements(requirements: Requirements): Promise<Interpreter> {
  const facts = await askInterpreter(requirements);
  const text = await readFile(requirements.file);
  const key = createHash('sha256').update(text).update(facts.version).update(facts.prefix).digest('hex');
  const folder = await cachedFolder(`installed-${key.slice(0, 16)}`, (empty) =>
    install(requirements, facts, empty),
  );
  return interpreterIn(folder)!;
}

async function askInterpreter(requirements: Requirements): Promise<InterpreterFacts> {
  const answer = await runCommand(requirements.interpreter.file, ['-c', ASK_FACTS]);
  if (!answer.isDone) throw failure(requirements, 'the interpreter', answer);
  return JSON.parse(lastLines(answer.output, 1)) as InterpreterFacts;
}

async function install(requirements: Requirements, facts: InterpreterFacts, folder: string): Promise<void> {
  const { file, log } = requirements;
  log(`installing ${file} into ${folder}`);
  const startMs = performance.now();
  const made = await runCommand(requirements.interpreter.file, ['-m', 'venv', folder]);
  if (!made.isDone) throw failure(requirements, 'python -m venv', made);
  const python = interpreterIn(folder)?.file ?? '';
  const asked = await runCommand(python, ['-c', ASK_PACKAGE_FOLDER]);
  if (!asked.isDone) throw failure(requirements, 'the interpreter', asked);
  const inherited = join(lastLines(asked.output, 1), 'nereid-inherited.pth');
  await writeFile(inherited, `${facts.packageFolders.join('\n')}\n`);
  // The backend itself needs numpy; where the interpreter has it nothing is fetched.
  const args = [...PIP_INSTALL.split(' '), '-r', file, 'numpy'];
  // Paths in a requirements file are relative to where pip runs.
  const installed = await runCommand(python, args, {
    cwd: dirname(file),
    onLine: (line) => log(`pip: ${line}`),
  });
  if (!installed.isDone) throw failure(requirements, 'pip', installed);
  log(`installed ${file} in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
}

function failure(requirements: Requirements, what: string, result: CommandResult): Error {
  return internal(
    `the requirements of model '${requirements.modelName}' in ${requirements.file} could not be installed: ` +
      `${what} ${result.how}: ${lastLines(result.output, ERROR_LINES_MAX)}`,
  );
}
