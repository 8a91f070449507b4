// What the bench needs beside Nereid: the real Triton, perf_analyzer, ONNX Runtime for Python and the models. All of
// it is installed once into the user's cache directory; NEREID_BENCH_PYTHON and NEREID_BENCH_PERF_ANALYZER name
// an interpreter and a perf_analyzer that exist already. Nothing outside the cache is written but the Python backend's
// stub inside that interpreter's own nvidia-pytriton.
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const BENCH = dirname(fileURLToPath(import.meta.url));
export const ROOT = dirname(BENCH);
export const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nereid', 'bench');

/** A wheel that is known to hold a tritonserver. */
const PYTRITON = 'nvidia-pytriton==0.7.0';

/**
 * Releases of tritonclient whose wheels hold a perf_analyzer. From 2.44 on it keeps the input and the output of every request
 * of a run: 4 GB for 600 kB at 32 in flight, and half of the client's time in page faults (README.md). So the last one before
 * it measures, and the last one there is shows that clients of today work.
 */
const MEASURING_PERF_ANALYZER = '2.43.0';
export const LAST_PERF_ANALYZER = '2.46.0';

const MODEL_SOURCES = [
  'make-models.py',
  'triton-model.py',
  'python-models/identity.py',
  'python-models/normalize.py',
  'python-models/accumulate.py',
];

const run = promisify(execFile);

/** Both servers must run the same ONNX Runtime, or the bench would compare two releases of that library. */
export function readOnnxRuntimeVersion() {
  const file = join(ROOT, 'node_modules', 'onnxruntime-node', 'package.json');
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

/** The interpreter that runs Triton's models and makes ours, and where its packages are. */
export async function preparePython(say) {
  const python = process.env.NEREID_BENCH_PYTHON || (await installPython(say));
  const script = [
    'import sys, sysconfig, json, onnxruntime, onnx, numpy',
    'from importlib.metadata import version',
    'print(json.dumps(dict(site=sysconfig.get_path("purelib"), lib=sysconfig.get_config_var("LIBDIR"),',
    '  tag="%d.%d" % sys.version_info[:2], onnxruntime=onnxruntime.__version__, numpy=numpy.__version__,',
    '  pytriton=version("nvidia-pytriton"))))',
  ].join('\n');
  const { stdout } = await run(python, ['-c', script]);
  return { python, ...JSON.parse(stdout) };
}

async function installPython(say) {
  const venv = join(CACHE, 'venv');
  const python = join(venv, 'bin', 'python');
  const packages = [
    PYTRITON,
    'tritonclient[all]',
    `onnxruntime==${readOnnxRuntimeVersion()}`,
    'onnx',
    'numpy<2',
  ];
  const stamp = join(venv, '.ready');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === packages.join('\n')) return python;
  mkdirSync(CACHE, { recursive: true });
  if (!existsSync(python)) {
    say(`making ${venv}`);
    await run(process.env.PYTHON || 'python3', ['-m', 'venv', venv]);
  }
  say(`installing ${packages.join(' ')} (some minutes, once)`);
  await runShown(python, ['-m', 'pip', 'install', '--disable-pip-version-check', '-q', ...packages]);
  writeFileSync(stamp, packages.join('\n'));
  return python;
}

/** perf_analyzer and the folder with the two libraries that it wants. */
export async function preparePerfAnalyzer(environment, say, release = MEASURING_PERF_ANALYZER) {
  const named = process.env.NEREID_BENCH_PERF_ANALYZER;
  if (named) {
    const file = statSync(named).isDirectory() ? join(named, 'perf_analyzer') : named;
    return { file, libraries: join(dirname(file), 'lib') };
  }
  const home = perfAnalyzerHome(release);
  if (!existsSync(home)) await installPerfAnalyzer({ home, release, environment, say });
  return { file: join(home, 'perf_analyzer'), libraries: join(home, 'lib') };
}

/** Where that release is or will be installed; it is there when it is whole. */
export function perfAnalyzerHome(release) {
  return join(CACHE, `perf_analyzer-${release}`);
}

async function installPerfAnalyzer({ home, release, environment, say }) {
  const requirement = `tritonclient==${release}`;
  say(`fetching perf_analyzer from ${requirement}`);
  const fresh = `${home}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(join(fresh, 'lib'), { recursive: true });
  const download = ['-m', 'pip', 'download', '--disable-pip-version-check', '-q', '--no-deps'];
  await runShown(environment.python, [...download, '--only-binary=:all:', '--dest', fresh, requirement]);
  const wheel = join(fresh, findName(fresh, /\.whl$/));
  const unzip = [
    'import sys, zipfile',
    'wheel = zipfile.ZipFile(sys.argv[1])',
    'name = next(n for n in wheel.namelist() if n.endswith("/bin/perf_analyzer"))',
    'open(sys.argv[2], "wb").write(wheel.read(name))',
  ].join('\n');
  await run(environment.python, ['-c', unzip, wheel, join(fresh, 'perf_analyzer')]);
  chmodSync(join(fresh, 'perf_analyzer'), 0o755);
  rmSync(wheel);
  // The wheel was built for a container that has these two; nvidia-pytriton carries them under hashed names.
  const libraries = join(environment.site, 'nvidia_pytriton.libs');
  symlinkSync(
    join(libraries, findName(libraries, /^libb64-.*\.so\.0d$/)),
    join(fresh, 'lib', 'libb64.so.0d'),
  );
  symlinkSync(
    join(libraries, findName(libraries, /^libcudart-.*\.so\.12/)),
    join(fresh, 'lib', 'libcudart.so.12'),
  );
  renameSync(fresh, home);
}

function findName(folder, pattern) {
  const name = readdirSync(folder).find((candidate) => pattern.test(candidate));
  if (name === undefined) throw new Error(`${folder}: no file matches ${pattern}`);
  return name;
}

/** The real tritonserver: its binary, its folders and the environment that it has to be started in. */
export function prepareTriton(environment) {
  const home = join(environment.site, 'pytriton', 'tritonserver');
  const stub = join(home, 'python_backend_stubs', environment.tag, 'triton_python_backend_stub');
  if (!existsSync(stub))
    throw new Error(`nvidia-pytriton has no Python backend for Python ${environment.tag}`);
  const backendStub = join(home, 'backends', 'python', 'triton_python_backend_stub');
  if (!existsSync(backendStub) || !readFileSync(stub).equals(readFileSync(backendStub))) {
    copyFileSync(stub, backendStub);
    chmodSync(backendStub, 0o755);
  }
  const binary = join(home, 'bin', 'tritonserver');
  if ((statSync(binary).mode & 0o111) === 0) chmodSync(binary, 0o755);
  const libraries = [environment.lib, join(environment.site, 'nvidia_pytriton.libs')];
  return {
    binary,
    args: [`--backend-directory=${join(home, 'backends')}`, `--cache-directory=${join(home, 'caches')}`],
    env: {
      LD_LIBRARY_PATH: [...libraries, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':'),
      PATH: `${dirname(environment.python)}:${process.env.PATH}`,
      PYTHONPATH: environment.site,
      PYTHONDONTWRITEBYTECODE: '1',
    },
  };
}

/** The repositories of both sides, by set of models; made again when a script that makes them has changed. */
export async function prepareModels(environment, say) {
  const home = join(CACHE, 'models');
  const script = join(BENCH, 'make-models.py');
  const hash = createHash('sha256');
  for (const name of MODEL_SOURCES) hash.update(readFileSync(join(BENCH, name)));
  const digest = hash.digest('hex');
  const stamp = join(home, '.ready');
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== digest) {
    say(`making the models in ${home}`);
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
    await runShown(environment.python, [script, home]);
    writeFileSync(stamp, digest);
  }
  const python = join(home, 'python');
  return {
    onnx: { nereid: join(home, 'nereid'), triton: join(home, 'triton') },
    python: { nereid: python, triton: python },
    schedulers: { nereid: join(home, 'schedulers-nereid'), triton: join(home, 'schedulers-triton') },
  };
}

export function runShown(file, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 2, 2] });
    child.on('error', reject);
    child.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`${file} ${args.join(' ')}: exit ${code}`)),
    );
  });
}
