#!/usr/bin/env node
// `npm run build:libllama`: builds libllama for the machine it runs on, from the source bundle inside the npm package
// node-llama-cpp, and puts the libraries into one directory for --backend-config=llama,library-path=DIR. Needs git,
// cmake and a C++ compiler, and nvcc for --cuda. Writes nothing but that directory and a working directory.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** The release whose structures Nereid knows; another one is refused by its checks at start. */
const PACKAGE = 'node-llama-cpp@3.22.1';
const PACKAGE_INTEGRITY =
  'sha512-bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==';
const BUNDLE = 'gitRelease.bundle';
/** The commit of llama.cpp v0.5.0 inside the bundle. */
const COMMIT = 'de3ff815ea7d559ee917f063901b8986f038abc6';
const LOG_LINES_SHOWN = 40;
const PROGRESS_STEP_PERCENT = 5;

const USAGE = `usage: npm run build:libllama -- [options]

  --cuda ARCH      with the CUDA backend for one architecture, for instance 90a (default: CPU only)
  --out DIR        where the libraries go (default: nereid/libllama/KIND-COMMIT in the user's cache directory)
  --jobs N         compilers at a time (default: every core)
  --from PATH      use what is here already, for machines without a network: the ${BUNDLE}, the package
                   as .tgz, the unpacked package, or the source tree of llama.cpp
  --work DIR       keep the source and the objects here, so that a second build is short
                   (default: a temporary directory, removed afterwards)
  --with-server    also build llama-server and llama-batched-bench, which bench/llm compares with
  --portable       code for any machine of this architecture, instead of this very processor
  --cmake ARG      one more argument for cmake; may be given several times
  --help
`;

const startedMs = performance.now();
/** The cmake that runs now, to be ended with us. */
let running;
let isStopped = false;

/** What went wrong, in words for the user: printed without a stack. */
class BuildError extends Error {}

function say(text) {
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  process.stderr.write(`[${clock.padStart(6)}] ${text}\n`);
}

async function main() {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  checkTools(options);
  const isTemporary = options.work === undefined;
  const work = isTemporary ? mkdtempSync(join(tmpdir(), 'nereid-libllama-')) : resolve(options.work);
  mkdirSync(work, { recursive: true });
  const remove = () => {
    if (isTemporary) rmSync(work, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      isStopped = true;
      // Its objects are removed once it writes no more: main goes on, and fails.
      if (running !== undefined) running.kill(signal);
      else process.exit(remove() ?? 1);
    });
  }
  try {
    const source = prepareSource({ from: options.from, work });
    const built = await compile({ source, work, options });
    collect({ source, built, options });
  } finally {
    remove();
  }
  say(`done: --backend-config=llama,library-path=${options.out}`);
  process.stdout.write(`${options.out}\n`);
}

function parseOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      cuda: { type: 'string' },
      out: { type: 'string' },
      jobs: { type: 'string', default: String(availableParallelism()) },
      from: { type: 'string' },
      work: { type: 'string' },
      'with-server': { type: 'boolean', default: false },
      portable: { type: 'boolean', default: false },
      cmake: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  if (!/^[1-9]\d{0,2}$/.test(values.jobs)) {
    throw new BuildError(`--jobs: '${values.jobs}' is not a count between 1 and 999`);
  }
  if (values.cuda !== undefined && !/^\d{2,3}[af]?$/.test(values.cuda)) {
    throw new BuildError(`--cuda: '${values.cuda}' is not an architecture such as 80, 89 or 90a`);
  }
  if (values.from !== undefined && !existsSync(values.from)) {
    throw new BuildError(`--from: ${values.from} does not exist`);
  }
  const kind = values.cuda === undefined ? (values.portable ? 'portable' : 'native') : `cuda-${values.cuda}`;
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nereid', 'libllama');
  return {
    ...values,
    kind,
    out: resolve(values.out ?? join(cache, `${kind}-${COMMIT.slice(0, 10)}`)),
    hasServer: values['with-server'],
    isPortable: values.portable,
  };
}

/** Before anything is fetched: what is missing, and what would bring it. */
function checkTools({ cuda, from }) {
  const missing = [];
  const isThere = (file, args = ['--version']) => spawnSync(file, args, { stdio: 'ignore' }).status === 0;
  const hasSource = from !== undefined && existsSync(join(from, 'CMakeLists.txt'));
  if (!hasSource && !isThere('git')) missing.push('git (package "git")');
  if (!isThere('cmake')) missing.push('cmake 3.19 or newer (package "cmake")');
  const compilers = process.env.CXX ? [process.env.CXX] : ['c++', 'g++', 'clang++'];
  if (!compilers.some((file) => isThere(file))) {
    missing.push('a C++17 compiler (package "g++" or "build-essential"; CXX names another)');
  }
  if (!isThere('ninja') && !isThere('make')) missing.push('make or ninja (package "make" or "ninja-build")');
  if (cuda !== undefined && findNvcc() === undefined) {
    missing.push('nvcc for --cuda (the CUDA toolkit; CUDACXX names it where it is not on the PATH)');
  }
  if (missing.length > 0) {
    throw new BuildError(
      `cannot build libllama, this is missing:\n${missing.map((one) => `  - ${one}`).join('\n')}`,
    );
  }
}

function findNvcc() {
  const candidates = [process.env.CUDACXX, 'nvcc', '/usr/local/cuda/bin/nvcc'].filter(Boolean);
  return candidates.find((file) => spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0);
}

/** The source tree of llama.cpp, from wherever it is to be had. */
function prepareSource({ from, work }) {
  if (from !== undefined && existsSync(join(from, 'include', 'llama.h'))) return resolve(from);
  const source = join(work, 'llama.cpp');
  if (existsSync(join(source, 'include', 'llama.h'))) return source;
  const bundle = findBundle({ from, work });
  say('unpacking the source');
  // Half a clone of an earlier try would be taken for a whole one.
  const fresh = `${source}.new`;
  rmSync(fresh, { recursive: true, force: true });
  runQuiet('git', ['clone', '--quiet', bundle, fresh]);
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: fresh, encoding: 'utf8' }).trim();
  if (commit !== COMMIT) {
    throw new BuildError(
      `${bundle} holds the commit ${commit} of llama.cpp; Nereid knows ${COMMIT} (${PACKAGE})`,
    );
  }
  renameSync(fresh, source);
  return source;
}

function findBundle({ from, work }) {
  if (from === undefined) return unpack(fetchPackage(work), work);
  if (from.endsWith('.tgz')) return unpack(resolve(from), work);
  if (!statSync(from).isDirectory()) return resolve(from);
  const inside = [BUNDLE, join('llama', BUNDLE), join('package', 'llama', BUNDLE)].map((path) =>
    join(from, path),
  );
  const found = inside.find((path) => existsSync(path));
  if (found === undefined)
    throw new BuildError(`--from: ${from} holds neither ${BUNDLE} nor include/llama.h`);
  return resolve(found);
}

/** npm checks the package against its registry; the pinned sum says that the registry still has what was tried. */
function fetchPackage(work) {
  say(`fetching ${PACKAGE} (36 MB)`);
  const text = runQuiet('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', work, PACKAGE]);
  const file = join(work, basename(JSON.parse(text)[0].filename));
  const sum = createHash('sha512').update(readFileSync(file)).digest('base64');
  if (`sha512-${sum}` !== PACKAGE_INTEGRITY) {
    throw new BuildError(
      `${PACKAGE} has the checksum sha512-${sum}, not ${PACKAGE_INTEGRITY}; nothing was built`,
    );
  }
  return file;
}

function unpack(archive, work) {
  runQuiet('tar', ['-xzf', archive, '-C', work, `package/llama/${BUNDLE}`]);
  return join(work, 'package', 'llama', BUNDLE);
}

/** Configures and compiles; returns the folder that holds the libraries and programs. */
async function compile({ source, work, options }) {
  const build = join(work, `build-${options.kind}${options.hasServer ? '-server' : ''}`);
  const logFile = join(work, `${basename(build)}.log`);
  say(`configuring (${options.kind}), log in ${logFile}`);
  await runLogged('cmake', ['-S', source, '-B', build, ...configure(options)], { logFile });
  const targets = ['llama', ...(options.hasServer ? ['llama-server', 'llama-batched-bench'] : [])];
  say(`compiling ${targets.join(', ')} with ${options.jobs} at a time`);
  const args = ['--build', build, '--config', 'Release', '--parallel', options.jobs, '--target', ...targets];
  await runLogged('cmake', args, { logFile, onLine: showProgress() });
  return join(build, 'bin');
}

function configure({ cuda, hasServer, isPortable, cmake }) {
  const flag = (name, isOn) => `-D${name}=${isOn ? 'ON' : 'OFF'}`;
  const nvcc = cuda === undefined ? undefined : findNvcc();
  const hasNinja = spawnSync('ninja', ['--version'], { stdio: 'ignore' }).status === 0;
  return [
    ...(hasNinja ? ['-G', 'Ninja'] : []),
    '-DCMAKE_BUILD_TYPE=Release',
    flag('BUILD_SHARED_LIBS', true),
    flag('GGML_NATIVE', !isPortable),
    flag('GGML_OPENMP', true),
    flag('GGML_CUDA', cuda !== undefined),
    // Machine code alone: PTX would be compiled again by the driver, at every first start.
    ...(cuda === undefined
      ? []
      : [`-DCMAKE_CUDA_ARCHITECTURES=${cuda}-real`, `-DCMAKE_CUDA_COMPILER=${nvcc}`]),
    flag('LLAMA_BUILD_COMMON', hasServer),
    flag('LLAMA_BUILD_TOOLS', hasServer),
    flag('LLAMA_BUILD_SERVER', hasServer),
    flag('LLAMA_BUILD_EXAMPLES', false),
    flag('LLAMA_BUILD_TESTS', false),
    flag('LLAMA_BUILD_APP', false),
    // The server's web pages would be fetched from the network during the build.
    flag('LLAMA_BUILD_UI', false),
    flag('LLAMA_USE_PREBUILT_UI', false),
    flag('LLAMA_OPENSSL', false),
    // One plain file per library, which finds its neighbours beside itself.
    flag('CMAKE_PLATFORM_NO_VERSIONED_SONAME', true),
    flag('CMAKE_BUILD_WITH_INSTALL_RPATH', true),
    '-DCMAKE_INSTALL_RPATH=$ORIGIN',
    ...cmake,
  ];
}

/** Reads "[ 42%]" of make and "[12/300]" of ninja. A terminal gets one line that moves, a log a line now and then. */
function showProgress() {
  let shown = -1;
  return (line) => {
    const match = /^\[\s*(\d+)(?:%|\/(\d+))\]\s*(.*)/.exec(line);
    if (match === null) return;
    const percent = Math.floor(
      match[2] === undefined ? Number(match[1]) : (100 * Number(match[1])) / Number(match[2]),
    );
    if (process.stderr.isTTY) {
      process.stderr.write(`\r\x1b[K         ${String(percent).padStart(3)} % ${match[3].slice(0, 90)}`);
      if (percent === 100) process.stderr.write('\r\x1b[K');
    } else if (percent >= shown + PROGRESS_STEP_PERCENT || (percent === 100 && shown !== 100)) {
      shown = percent;
      say(`${percent} %`);
    }
  };
}

/** What was built, beside each other in one directory, which appears whole or not at all. */
function collect({ source, built, options }) {
  const names = readdirSync(built).filter((name) => isWanted(name, options));
  for (const wanted of ['libllama', 'libggml-base']) {
    if (!names.some((name) => name.startsWith(wanted)))
      throw new BuildError(`the build made no ${wanted} in ${built}`);
  }
  const fresh = `${options.out}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  for (const name of names) copyFileSync(realpathSync(join(built, name)), join(fresh, name));
  copyFileSync(join(source, 'LICENSE'), join(fresh, 'LICENSE.llama.cpp'));
  const facts = { package: PACKAGE, commit: COMMIT, kind: options.kind, builtAt: new Date().toISOString() };
  writeFileSync(join(fresh, 'build.json'), `${JSON.stringify(facts, null, 2)}\n`);
  rmSync(options.out, { recursive: true, force: true });
  mkdirSync(dirname(options.out), { recursive: true });
  renameSync(fresh, options.out);
  say(`${names.length} files in ${options.out}: ${names.join(' ')}`);
}

function isWanted(name, { hasServer }) {
  if (/^lib(?:llama|ggml|ggml-\w+)\.(?:so|dylib)$/.test(name)) return true;
  const isOfServer = /^(?:llama-server|llama-batched-bench|lib(?:llama-[\w-]+|mtmd)\.(?:so|dylib))$/;
  return hasServer && isOfServer.test(name);
}

function runQuiet(file, args) {
  const { status, stdout, stderr, error } = spawnSync(file, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  });
  if (status !== 0) {
    throw new BuildError(
      `${file} ${args.join(' ')} failed: ${(error?.message ?? stderr).trim().slice(-2000)}`,
    );
  }
  return stdout;
}

/** The whole output goes to a file; its end is shown when the command fails. */
async function runLogged(file, args, { logFile, onLine }) {
  const log = createWriteStream(logFile, { flags: 'a' });
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running = child;
  let rest = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      log.write(text);
      const lines = (rest + text).split(/\r?\n/);
      rest = lines.pop();
      if (onLine !== undefined) lines.forEach(onLine);
    });
  }
  const code = await new Promise((settle, reject) => {
    child.once('error', reject);
    child.once('close', settle);
  });
  running = undefined;
  await new Promise((settle) => log.end(settle));
  if (isStopped) throw new BuildError('stopped');
  if (code === 0) return;
  const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_LINES_SHOWN);
  throw new BuildError(`${file} failed (exit ${code}); the end of its output:\n${tail.join('\n')}`);
}

main().catch((error) => {
  process.stderr.write(
    `build-libllama: ${error instanceof BuildError ? error.message : (error.stack ?? error)}\n`,
  );
  process.exit(1);
});
