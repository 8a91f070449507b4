// The command that starts the Python host of a model: which interpreter, with which packages, under which time limit.
// Called by host-command.ts once per load of a version.
//
//   interpreter   NEREID_PYTHON, else the model's EXECUTION_ENV_PATH, else the archive beside a Python-based backend,
//                 else python3
//   packages      the interpreter's, and those of requirements.txt when auto-install is on

import { dirname, join, resolve, sep } from 'node:path';
import { invalidArgument, StatusError } from '../domain/status.ts';
import type { HostCommand, HostedModel } from '../instance/host-process.ts';
import { openExecutionEnvironment } from './execution-environment.ts';
import { installRequirements } from './install-requirements.ts';
import { findPython, type Interpreter, isFile } from './python-interpreter.ts';

export interface PythonFiles {
  /** The program of the host. */
  readonly host: string;
  /** The model.py of a Python-based backend; undefined for models with their own. */
  readonly backend: string | undefined;
}

const BACKEND_ENVIRONMENT = 'pb_exec_env_model.py.tar.gz';
const AUTO_INSTALL_FLAG = '--backend-config=python,auto-install=true';
const MISSING_MODULE = /^ModuleNotFoundError: No module named '([^'.]+)/;

/** Throws a StatusError when the environment cannot be found or made. */
export async function createPythonCommand(model: HostedModel, files: PythonFiles): Promise<HostCommand> {
  const folder =
    files.backend === undefined ? join(model.modelDirectory, String(model.version)) : dirname(files.backend);
  const requirements = join(folder, 'requirements.txt');
  const isAutoInstall = isAutoInstallOn(model.pythonSettings['auto-install']);
  const executeMsMax = executeLimitOf(model.pythonSettings['execute-timeout-secs']);
  const found = await findInterpreter(model, files.backend);
  const log = (message: string) => model.log(message);
  const isInstalled = isAutoInstall && isFile(requirements);
  const interpreter = isInstalled
    ? await installRequirements({ modelName: model.config.name, file: requirements, interpreter: found, log })
    : found;
  return {
    file: interpreter.file,
    args: files.backend === undefined ? [files.host] : [files.host, files.backend],
    env: {
      ...interpreter.env,
      // What a host says about its interpreter names the one that runs.
      NEREID_PYTHON: interpreter.file,
      // A crash in native code leaves the lines of Python that led to it.
      PYTHONFAULTHANDLER: '1',
      // A poll would take caches in the model's directory for changes of the model.
      ...(isBelow(interpreter.file, model.modelDirectory) ? { PYTHONDONTWRITEBYTECODE: '1' } : {}),
    },
    executeMsMax,
    explain: (error) =>
      explainMissingModule(error, { python: interpreter.file, requirements, isAutoInstall }),
  };
}

function isBelow(path: string, folder: string): boolean {
  return resolve(path).startsWith(resolve(folder) + sep);
}

async function findInterpreter(model: HostedModel, backendFile: string | undefined): Promise<Interpreter> {
  const own = model.config.parameters.EXECUTION_ENV_PATH?.string_value ?? '';
  const named = process.env.NEREID_PYTHON ?? '';
  if (named !== '') {
    if (own !== '') model.log(`NEREID_PYTHON is set, EXECUTION_ENV_PATH ${own} is not used`);
    return findPython(named);
  }
  const beside = backendFile === undefined ? '' : join(dirname(backendFile), BACKEND_ENVIRONMENT);
  const path = own === '' && beside !== '' && isFile(beside) ? beside : own;
  if (path === '') return findPython('python3');
  const { modelDirectory } = model;
  return openExecutionEnvironment({ path, modelDirectory, log: (message) => model.log(message) });
}

function isAutoInstallOn(setting = 'false'): boolean {
  if (/^(?:true|on|1)$/i.test(setting)) return true;
  if (/^(?:false|off|0)$/i.test(setting)) return false;
  throw invalidArgument(`backend config 'auto-install' must be true or false; got '${setting}'`);
}

/** Undefined: no limit. */
function executeLimitOf(setting: string | undefined): number | undefined {
  if (setting === undefined) return undefined;
  const secs = Number(setting);
  if (Number.isFinite(secs) && secs >= 0) return secs === 0 ? undefined : secs * 1000;
  throw invalidArgument(
    `backend config 'execute-timeout-secs' must be a number of seconds, 0 for no limit; got '${setting}'`,
  );
}

/** Python's text, then what to do about it. */
function explainMissingModule(
  error: StatusError,
  facts: { python: string; requirements: string; isAutoInstall: boolean },
): StatusError {
  const module = MISSING_MODULE.exec(error.message)?.[1];
  if (module === undefined) return error;
  const { python, requirements, isAutoInstall } = facts;
  const isListed = isFile(requirements);
  const what = isListed ? `-r ${requirements}` : module;
  const byHand = `Install what the model needs with: ${python} -m pip install ${what}`;
  const byServer = isListed ? AUTO_INSTALL_FLAG : `${AUTO_INSTALL_FLAG} and a ${requirements}`;
  const fix = isAutoInstall
    ? `List the package that holds it in ${requirements}`
    : `${byHand} (or let the server do it: ${byServer})`;
  const gap = error.message.endsWith('\n') ? '\n' : '; ';
  return new StatusError(error.code, `${error.message}${gap}${fix}`, { cause: error });
}
