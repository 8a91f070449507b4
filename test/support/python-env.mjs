// Makes a Python environment of the tests, once per content of its requirements.txt, in the user's cache
// directory. Called by test/run.mjs. Never throws: a machine without Python or without a package index gets a
// reason, and the tests are skipped with it.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const INSTALL_MS_MAX = 5 * 60_000;
const SYSTEM_PYTHON = process.env.NEREID_PYTHON ?? 'python3';

/**
 * @param {string} requirements the file
 * @param {{ name?: string, isMade?: boolean }} options isMade: false takes one that is there, and makes none
 * @returns {Promise<{ python: string } | { reason: string }>}
 */
export async function makePythonEnv(requirements, { name = 'test-venv', isMade = true } = {}) {
  const version = await run(SYSTEM_PYTHON, ['-c', 'import sys; print(sys.version)'], 20_000);
  if (version.code !== 0) return { reason: `${SYSTEM_PYTHON} does not run: ${lastLine(version.output)}` };
  const key = createHash('sha256')
    .update(await readFile(requirements))
    .update(version.output)
    .digest('hex');
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'nereid', `${name}-${key.slice(0, 16)}`);
  const done = join(folder, 'complete');
  if (existsSync(done)) return { python: pythonIn(folder) };
  if (!isMade) return { reason: `${folder} was not made` };

  // Built beside its place and renamed, so that two runs at once do not see half an environment.
  const draft = `${folder}.${process.pid}`;
  try {
    await mkdir(dirname(folder), { recursive: true });
    console.log(`making the Python environment of the tests in ${folder} (once)`);
    const venv = await run(SYSTEM_PYTHON, ['-m', 'venv', draft], 60_000);
    if (venv.code !== 0) return { reason: `python -m venv failed: ${lastLine(venv.output)}` };
    const pip = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--retries',
      '1',
      '--timeout',
      '15',
    ];
    const install = await run(pythonIn(draft), [...pip, '-r', requirements], INSTALL_MS_MAX);
    if (install.code !== 0) return { reason: `pip install failed: ${lastLine(install.output)}` };
    await writeFile(join(draft, 'complete'), '');
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
    return { python: pythonIn(folder) };
  } catch (error) {
    if (existsSync(done)) return { python: pythonIn(folder) };
    return { reason: `the Python environment could not be made: ${error.message}` };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** @param {string} folder */
function pythonIn(folder) {
  return process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python');
}

/** @param {string} text */
function lastLine(text) {
  return text.trim().split('\n').at(-1)?.slice(0, 300) ?? '';
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {number} msMax
 * @returns {Promise<{ code: number | null, output: string }>}
 */
function run(command, args, msMax) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(() => {
      output += `\nnot done after ${msMax / 1000} s`;
      child.kill('SIGKILL');
    }, msMax);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        output += data;
      });
    }
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ code: null, output: error.message });
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}
