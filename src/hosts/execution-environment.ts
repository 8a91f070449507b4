// EXECUTION_ENV_PATH of a model: a directory with an interpreter (venv, conda), or an archive of one (conda-pack), which
// is unpacked once per path and time of change. Called by python-command.ts.

import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { internal } from '../domain/status.ts';
import { cachedFolder } from './cached-folder.ts';
import { type Interpreter, interpreterIn } from './python-interpreter.ts';
import { lastLines, runCommand } from './run-command.ts';

/** A model writes its own directory so, because it does not know where the repository lies. */
const MODEL_DIRECTORY = '$$TRITON_MODEL_DIRECTORY';

export interface ExecutionEnvironment {
  /** As the config has it. */
  readonly path: string;
  readonly modelDirectory: string;
  log(message: string): void;
}

/** Throws a StatusError in Triton's words when there is no environment. */
export async function openExecutionEnvironment(given: ExecutionEnvironment): Promise<Interpreter> {
  const path = given.path.replace(MODEL_DIRECTORY, () => given.modelDirectory);
  const info = await stat(path).catch(() => undefined);
  const folder = info?.isFile() ? await unpack(resolve(path), info.mtimeMs, given) : resolve(path);
  const interpreter = interpreterIn(folder);
  if (interpreter !== undefined) return interpreter;
  throw internal(
    `Path ${info?.isFile() ? folder : path}/bin/activate does not exist. The Python environment should contain an 'activate' script.`,
  );
}

async function unpack(path: string, changedMs: number, given: ExecutionEnvironment): Promise<string> {
  const archive = await realpath(path);
  const key = createHash('sha256').update(`${archive}\n${changedMs}`).digest('hex').slice(0, 16);
  return cachedFolder(`unpacked-${key}`, async (folder) => {
    given.log(`unpacking ${archive} to ${folder}`);
    const result = await runCommand('tar', ['-xf', archive, '-C', folder]);
    if (result.isDone) return;
    throw internal(`Failed to extract ${archive}: tar ${result.how}: ${lastLines(result.output, 5)}`);
  });
}
