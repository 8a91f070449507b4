// Python models that misbehave in every way a model can, while another Python model is under load: each fault costs its
// own requests alone, is told with its reason, and the model comes back.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { call, failuresOf, type Load, requireAllSucceeded, startLoad, waitUntil } from '../support/load.ts';
import { childrenOf, procSkip } from '../support/processes.ts';
import { pythonSkip } from '../support/python.ts';
import {
  addPythonModel,
  ask,
  askError,
  askText,
  load,
  loadError,
  textBody,
} from '../support/python-model.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const EXECUTE_SECS_MAX = 1;
/** A bound against standing still, not a measure of speed. */
const GAP_MS_MAX = 3_000;

const STEADY = `class TritonPythonModel:
    def execute(self, requests):
        return answers(requests, "steady")
`;
const FAULTY = `import ctypes, resource, threading, time

class TritonPythonModel:
    def execute(self, requests):
        getattr(self, asked(requests))()
        return answers(requests, "fine")

    def works(self):
        pass

    def exits(self):
        print("about to exit", file=sys.stderr)
        os._exit(3)

    def crashes(self):
        ctypes.string_at(0)

    def loops(self):
        while True:
            pass

    def raises(self):
        raise ValueError("no such thing")

    def quits(self):
        sys.exit("enough")

    def fills_memory(self):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20), before[1]))
        try:
            blocks = []
            while True:
                blocks.append(bytearray(16 << 20))
        finally:
            blocks = None
            resource.setrlimit(resource.RLIMIT_AS, before)

    def prints_forever(self):
        def work():
            while True:
                print("nothing new " * 5)
        threading.Thread(target=work, daemon=True).start()
`;

function raisingIn(method: string): string {
  const isClassMethod = method === 'auto_complete_config';
  return `class TritonPythonModel:
    ${isClassMethod ? '@staticmethod' : ''}
    def ${method}(${isClassMethod ? '' : 'self, '}*_):
        raise ValueError("raised in ${method}")
${method === 'execute' ? '' : '\n    def execute(self, requests):\n        return answers(requests, "fine")\n'}`;
}

const EXITS_AT_START = `class TritonPythonModel:
    def initialize(self, args):
        print("the licence has expired", file=sys.stderr)
        os._exit(9)

    def execute(self, requests):
        return None
`;

describe('faults of Python models', { skip: pythonSkip || procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let steady: Load;

  before(async () => {
    repository = createRepository();
    addPythonModel(repository, { name: 'steady', source: STEADY });
    addPythonModel(repository, { name: 'faulty', source: FAULTY });
    addPythonModel(repository, { name: 'victim', source: STEADY });
    addPythonModel(repository, { name: 'exits_at_start', source: EXITS_AT_START });
    for (const method of ['auto_complete_config', '__init__', 'initialize', 'execute', 'finalize'])
      addPythonModel(repository, { name: `raises_in_${method}`, source: raisingIn(method) });
    server = await startServer({
      repository: repository.path,
      args: [
        '--model-control-mode=explicit',
        `--backend-config=python,execute-timeout-secs=${EXECUTE_SECS_MAX}`,
      ],
      env: { NEREID_PYTHON: PYTHON },
    });
    await load(server, 'steady');
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  beforeEach(() => {
    steady = startLoad(server, { model: 'steady', body: textBody(''), connections: 2, pauseMs: 2 });
  });
  afterEach(async () => {
    const answers = await steady.stop();
    requireAllSucceeded(answers);
    assert.ok(answers.length > 5, `the other model answered ${answers.length} requests`);
    const longestMs = Math.max(...answers.map((answer) => answer.endMs - answer.startMs));
    assert.ok(longestMs < GAP_MS_MAX, `the other model took ${longestMs} ms for a request`);
  });

  describe('in execute', () => {
    // Each test has a fresh model: one that dies often is restarted ever more slowly.
    beforeEach(() => load(server, 'faulty'));
    afterEach(async () => {
      await call(server, { path: '/v2/repository/models/faulty/unload', body: '' });
      assert.ok(await waitUntil(async () => !(await isReady('/v2/models/faulty/ready'))));
    });

    const DEATH = "instance 'faulty_0_0' of model 'faulty' ended unexpectedly: host process ";

    test('os._exit fails the request with what was printed last, and the model comes back', async () => {
      assert.equal(
        await askError(server, 'faulty', 'exits'),
        `${DEATH}exited with code 3; it printed: about to exit`,
      );
      assert.equal(await askText(server, 'faulty', 'works'), 'fine');
      assert.ok(await server.waitForLog(/faulty faulty_0_0: about to exit/));
    });

    test('a crash in native code tells the lines of Python that led to it', async () => {
      const error = await askError(server, 'faulty', 'crashes');
      assert.ok(error.startsWith(`${DEATH}was ended by signal SIGSEGV; it printed: `), error);
      assert.match(error, /model\.py", line \d+ in crashes/);
      assert.equal(await askText(server, 'faulty', 'works'), 'fine');
    });

    test('a loop without end is ended after execute-timeout-secs', async () => {
      const [error, waiting] = await Promise.all([
        askError(server, 'faulty', 'loops'),
        new Promise((resolve) => setTimeout(resolve, 100)).then(() => ask(server, 'faulty', 'works')),
      ]);
      assert.equal(
        error,
        `${DEATH}did not finish an execution within 1 s (execute-timeout-secs) (was ended by signal SIGKILL)`,
      );
      assert.equal(waiting.status, 200, waiting.text);
    });

    test('an exception costs its request and no process', async () => {
      const hosts = childrenOf(server.pid);
      const begin = "Failed to process the request(s) for model 'faulty_0_0', message: ";
      const raised = await askError(server, 'faulty', 'raises');
      assert.ok(raised.startsWith(`${begin}ValueError: no such thing\n\nAt:\n`), raised);
      const quit = await askError(server, 'faulty', 'quits');
      assert.ok(quit.startsWith(`${begin}SystemExit: enough\n\nAt:\n`), quit);
      const full = await askError(server, 'faulty', 'fills_memory');
      assert.ok(full.startsWith(`${begin}MemoryError: `), full);
      assert.equal(await askText(server, 'faulty', 'works'), 'fine');
      assert.deepEqual(childrenOf(server.pid), hosts);
    });

    test('a thread that prints without end does not hold up the server', async () => {
      assert.equal(await askText(server, 'faulty', 'prints_forever'), 'fine');
      const countBefore = steady.answers.length;
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      assert.ok(steady.answers.length > countBefore + 20);
      const printed = server.logs().split('nothing new nothing new').length;
      assert.ok(printed > 100, 'nothing reached the log');
      assert.equal(await askText(server, 'faulty', 'works'), 'fine');
    });
  });

  test('an exception in a method of the start fails the load with its text and place', async () => {
    for (const method of ['auto_complete_config', '__init__', 'initialize']) {
      const model = `raises_in_${method}`;
      assert.equal(
        await loadError(server, model),
        `load failed for model '${model}': version 1 is at UNAVAILABLE state: Internal: ` +
          `ValueError: raised in ${method}\n\nAt:\n  ${repository.at(model, '1', 'model.py')}(15): ${method}\n;\n`,
      );
    }
    assert.match(
      await loadError(server, 'exits_at_start'),
      /Internal: host process exited with code 9; it printed: the licence has expired;\n$/,
    );
  });

  test('an exception in execute and in finalize is told', async () => {
    await load(server, 'raises_in_execute');
    assert.match(await askError(server, 'raises_in_execute', ''), /ValueError: raised in execute\n\nAt:/);
    await load(server, 'raises_in_finalize');
    await call(server, { path: '/v2/repository/models/raises_in_finalize/unload', body: '' });
    assert.ok(
      await server.waitForLog(/raises_in_finalize raises_in_finalize_0_0: finalize failed: ValueError/),
    );
  });

  test('a host killed under load loses what it had, and nothing else', async () => {
    const hosts = childrenOf(server.pid);
    await load(server, 'victim');
    const [pid] = childrenOf(server.pid).filter((child) => !hosts.includes(child));
    const victim = startLoad(server, { model: 'victim', body: textBody(''), connections: 4, pauseMs: 2 });
    await waitUntil(() => victim.answers.length > 20);
    process.kill(pid!, 'SIGKILL');
    assert.ok(await server.waitForLog(/instance 'victim_0_0' was restarted/));
    const countBefore = victim.answers.length;
    assert.ok(await waitUntil(() => victim.answers.length > countBefore + 20));
    const failures = failuresOf(await victim.stop());
    // Of a quick model without batches eight requests may be on a host at a time; here there are four.
    assert.ok(failures.length <= 4, `${failures.length} requests were lost`);
    for (const { status, text } of failures) {
      assert.equal(status, 503);
      assert.match(text, /ended unexpectedly: host process was ended by signal SIGKILL/);
    }
  });

  async function isReady(path: string): Promise<boolean> {
    return (await call(server, { path })).status === 200;
  }
});
