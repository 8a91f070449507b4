// Runs a Python driver of the tests in the environment that test/run.mjs made. When there is none, the
// tests are skipped with the reason the runner found.
import { spawn } from 'node:child_process';
import { inRoot } from './paths.ts';

/** Pass as node:test's `skip` option: false, or why there is no Python. */
export const pythonSkip: string | false = process.env.NEREID_TEST_PYTHON
  ? false
  : (process.env.NEREID_TEST_PYTHON_REASON ?? 'no Python environment: run through `npm test`');

export interface PythonResult {
  readonly code: number | null;
  readonly output: string;
}

/** `script` is a path below test/. Standard output and error come back together. */
export function runPython(options: {
  readonly script: string;
  readonly args: readonly string[];
  readonly msMax?: number;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<PythonResult> {
  const python = process.env.NEREID_TEST_PYTHON ?? 'python3';
  return new Promise((resolve, reject) => {
    const child = spawn(python, ['-u', inRoot('test', options.script), ...options.args], {
      cwd: inRoot(),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.msMax ?? 120_000,
      killSignal: 'SIGKILL',
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
