// The backends that run a framework's own models, against the frameworks themselves: programs in framework_models/
// make the models and compare answers. A framework is large: it is used where the interpreter named by
// NEREID_FRAMEWORK_PYTHON, or that of the tests, has it. With NEREID_TEST_FRAMEWORKS=1 the runner installs all but vLLM, once.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** Backend, the module that it needs, and what pip calls it. */
const FRAMEWORKS = [
  { backend: 'pytorch', module: 'torch', package: 'torch' },
  { backend: 'tensorflow', module: 'tensorflow', package: 'tensorflow' },
  { backend: 'openvino', module: 'openvino', package: 'openvino' },
  { backend: 'vllm', module: 'vllm', package: 'vllm' },
] as const;

const TEST_PYTHON = process.env.NEREID_TEST_PYTHON ?? '';
const CANDIDATES = [process.env.NEREID_FRAMEWORK_PYTHON ?? '', TEST_PYTHON].filter((python) => python !== '');
/** Engines of language models take most of it to start. */
const PROGRAM_MS_MAX = 480_000;

for (const framework of FRAMEWORKS) {
  const python = CANDIDATES.find((candidate) => hasModule(candidate, framework.module));
  const installer = CANDIDATES[0] ?? 'python3';
  const how =
    framework.backend === 'vllm'
      ? `install it with: ${installer} -m pip install ${framework.package}`
      : 'NEREID_TEST_FRAMEWORKS=1 installs it (once, seven gigabytes for all three)';
  const skip = python === undefined && `no interpreter has ${framework.module}; ${how}`;
  describe(`the backend ${framework.backend}`, { skip }, () => {
    const script = `e2e/framework_models/${framework.backend}_models.py`;
    let repository: TestRepository;
    let server: RunningServer;
    let output = '';

    before(async () => {
      repository = createRepository();
      const made = await runProgram(python ?? '', script, ['make', repository.path]);
      assert.equal(made.code, 0, made.output);
      server = await startServer({
        repository: repository.path,
        args: ['--model-control-mode=explicit'],
        env: { NEREID_PYTHON: python ?? '' },
      });
      ({ output } = await runProgram(python ?? '', script, [
        'check',
        server.httpAddress,
        repository.path,
        server.metricsAddress,
      ]));
    });

    after(async () => {
      await server?.stop();
      repository?.remove();
    });

    testChecks(script, () => `${output}\n--- server log\n${server.logs()}`);
  });
}

test('a model whose framework is missing says how to get it', { skip: pythonSkip }, async () => {
  const missing = [
    ...FRAMEWORKS,
    { backend: 'tensorrt', module: 'tensorrt', package: 'tensorrt' },
    { backend: 'tensorrtllm', module: 'tensorrt_llm', package: 'tensorrt-llm' },
  ].filter((framework) => !hasModule(TEST_PYTHON, framework.module));
  const repository = createRepository();
  for (const { backend } of missing) {
    mkdirSync(repository.at(backend, '1'), { recursive: true });
    // Of TensorFlow's two formats none is the default.
    const platform = backend === 'tensorflow' ? 'platform: "tensorflow_savedmodel"\n' : '';
    writeFileSync(repository.at(backend, 'config.pbtxt'), `backend: "${backend}"\n${platform}`);
  }
  const server = await startServer({
    repository: repository.path,
    args: ['--model-control-mode=explicit'],
    env: { NEREID_PYTHON: TEST_PYTHON },
  });
  try {
    for (const { backend, module, package: name } of missing) {
      const url = `${server.httpUrl}/v2/repository/models/${backend}/load`;
      const answer = await fetch(url, { method: 'POST', body: '{}' });
      const { error } = (await answer.json()) as { error: string };
      const expected = `the ${backend} backend needs ${module}, which ${TEST_PYTHON} does not have; install it with: ${TEST_PYTHON} -m pip install ${name}`;
      assert.ok(error.includes(expected), error);
    }
  } finally {
    await server.stop();
    repository.remove();
  }
});

function hasModule(python: string, module: string): boolean {
  const question = `import importlib.util as u; print(all(u.find_spec(m) for m in ("numpy", "${module}")))`;
  try {
    return execFileSync(python, ['-c', question], { encoding: 'utf8', stdio: 'pipe' }).trim() === 'True';
  } catch {
    // No such interpreter: it has no module either, and the skip says so.
    return false;
  }
}

/** Like runPython, with the framework's interpreter. */
function runProgram(
  python: string,
  script: string,
  args: readonly string[],
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(python, ['-u', inRoot('test', script), ...args], {
      cwd: inRoot(),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', TF_CPP_MIN_LOG_LEVEL: '2' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: PROGRAM_MS_MAX,
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
