// The Python interpreters there are: the one the user names, and the one inside an environment. Looked for here,
// because a failed spawn says neither what nor why. Called by python-command.ts and its neighbours.

import { existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { internal } from '../domain/status.ts';

export interface Interpreter {
  readonly file: string;
  /** What an activated environment would have set. */
  readonly env: Readonly<Record<string, string>>;
}

/** Where environments of the different systems have it. */
const PLACES = process.platform === 'win32' ? ['Scripts/python.exe', 'python.exe'] : ['bin/python'];

/** Throws a StatusError when there is none of that name or path. */
export function findPython(python: string): Interpreter {
  const isPath = /[/\\]/.test(python);
  const folders = isPath ? [''] : (process.env.PATH ?? '').split(delimiter);
  const endings = process.platform === 'win32' ? ['', '.exe'] : [''];
  const isFound = folders.some((folder) => endings.some((ending) => isFile(join(folder, python + ending))));
  if (isFound) return { file: python, env: {} };
  throw internal(
    `the Python interpreter '${python}' was not found; install Python 3.8 or newer, or name one with NEREID_PYTHON`,
  );
}

/** The interpreter of a venv or conda environment; undefined when the folder is neither. */
export function interpreterIn(folder: string): Interpreter | undefined {
  const file = PLACES.map((place) => join(folder, place)).find(isFile);
  if (file === undefined) return undefined;
  const isConda = existsSync(join(folder, 'conda-meta'));
  const path = `${join(folder, process.platform === 'win32' ? 'Scripts' : 'bin')}${delimiter}${process.env.PATH ?? ''}`;
  return { file, env: { PATH: path, [isConda ? 'CONDA_PREFIX' : 'VIRTUAL_ENV']: folder } };
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
