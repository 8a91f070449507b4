// Runs a command that prepares an environment (tar, venv, pip) and tells its lines while it runs. Called by the
// other files of this room; such a command never outlives the server.

import { spawn } from 'node:child_process';

export interface CommandResult {
  readonly isDone: boolean;
  /** `exited with code 1`, `did not end within 1800 s`. */
  readonly how: string;
  readonly output: string;
}

/** Large wheels over a slow line fit, an index that never answers does not. */
const COMMAND_MS_MAX = 30 * 60_000;
const OUTPUT_CHARS_MAX = 64 * 1024;

/** Never rejects. Standard output and error come back together, the end of them when they are long. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: { readonly cwd?: string; onLine?(line: string): void } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    let output = '';
    let how = '';
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const killNow = () => child.kill('SIGKILL');
    const timer = setTimeout(() => {
      how = `did not end within ${COMMAND_MS_MAX / 1000} s`;
      killNow();
    }, COMMAND_MS_MAX);
    process.once('exit', killNow);
    const done = (isDone: boolean) => {
      clearTimeout(timer);
      process.off('exit', killNow);
      resolve({ isDone, how, output });
    };
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-OUTPUT_CHARS_MAX);
        const lines = (rest + text).split('\n');
        rest = lines.pop()!;
        for (const line of lines) if (line.trim() !== '') options.onLine?.(line.trimEnd());
      });
    }
    child.on('error', (error) => {
      how = `could not be started: ${error.message}`;
      done(false);
    });
    child.on('close', (code, signal) => {
      how ||= signal === null ? `exited with code ${code}` : `was ended by signal ${signal}`;
      done(code === 0);
    });
  });
}

/** The end of what a failed command printed, where the reason is. */
export function lastLines(output: string, count: number): string {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .join('\n');
}
