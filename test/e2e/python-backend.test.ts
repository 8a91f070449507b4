// Python models through the built server: answers, error texts as a real Triton gives them, streams, load errors, and
// what happens without numpy or without an interpreter. The models are in python_models/.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';

interface Answer {
  readonly error?: string;
  readonly parameters?: Record<string, unknown>;
  readonly outputs?: { name: string; datatype: string; shape: number[]; data: unknown[] }[];
}

const SERVED = ['modes', 'async_batch', 'async_stream', 'keeps'];
const repository = mkdtempSync(join(tmpdir(), 'nereid-python-'));
const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';

function start(options: { python?: string; models?: readonly string[] }): Promise<RunningServer> {
  const loads = (options.models ?? []).map((model) => `--load-model=${model}`);
  return startServer({
    repository,
    args: ['--model-control-mode=explicit', '--log-verbose=1', ...loads],
    env: { NEREID_PYTHON: options.python ?? PYTHON },
  });
}

async function post(url: string, body: object): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

async function loadError(server: RunningServer, model: string): Promise<string> {
  const { status, text } = await post(`${server.httpUrl}/v2/repository/models/${model}/load`, {});
  assert.equal(status, 400, text);
  const { error } = JSON.parse(text) as { error: string };
  const start = `load failed for model '${model}': version 1 is at UNAVAILABLE state: Internal: `;
  assert.ok(error.startsWith(start), error);
  return error.slice(start.length);
}

describe('the Python backend', { skip: pythonSkip }, () => {
  let server: RunningServer;

  before(async () => {
    cpSync(inRoot('test', 'e2e', 'python_models'), repository, { recursive: true });
    server = await start({ models: SERVED });
  });
  after(async () => {
    await server?.stop();
    rmSync(repository, { recursive: true, force: true });
  });

  async function infer(mode: string): Promise<Answer> {
    const inputs = [{ name: 'MODE', datatype: 'BYTES', shape: [1], data: [mode] }];
    return JSON.parse((await post(`${server.httpUrl}/v2/models/modes/infer`, { inputs })).text) as Answer;
  }

  const out = (data: unknown[], datatype = 'INT32') => [
    { name: 'OUT', datatype, shape: [data.length], data },
  ];

  test('an exception fails the request with its text and places, the innermost first', async () => {
    const file = join(repository, 'modes', '1', 'model.py');
    const { error } = await infer('raises');
    const [first, empty, at, ...places] = (error ?? '').split('\n');
    assert.equal(first, "Failed to process the request(s) for model 'modes_0_0', message: KeyError: 'q'");
    assert.deepEqual([empty, at], ['', 'At:']);
    assert.deepEqual(
      places.map((place) => place.replace(/\(\d+\)/, '')),
      [`  ${file}: fail_inside`, `  ${file}: raises`, `  ${file}: execute`, ''],
    );
    assert.match(
      (await infer('raises_nothing_to_say')).error ?? '',
      /message: ValueError: <EMPTY MESSAGE>\n\nAt:/,
    );
  });

  test('what execute must not return is named', async () => {
    const prefix =
      "Failed to process the request(s) for model 'modes_0_0', message: Expected a list in the execute";
    assert.equal((await infer('returns_text')).error, `${prefix} return, found type '<class 'str'>'.`);
    assert.equal((await infer('returns_tuple')).error, `${prefix} return, found type '<class 'tuple'>'.`);
  });

  test('a response sender answers at once, later, and once', async () => {
    assert.deepEqual((await infer('answers_by_sender')).outputs, out([3]));
    assert.deepEqual((await infer('answers_from_a_thread')).outputs, out([4]));
    assert.deepEqual((await infer('answers_twice')).outputs, out([1]));
    const refused =
      /message: Unable to send response\. Non-decoupled model cannot send more than one response\./;
    assert.ok(await server.waitForLog(refused));
  });

  test('outputs have the type and shape that the model gave them; unknown ones are left out', async () => {
    assert.deepEqual((await infer('another_datatype')).outputs, out([1.5, 2.5], 'FP64'));
    assert.deepEqual((await infer('elements')).outputs, [
      { name: 'TEXT', datatype: 'BYTES', shape: [4], data: ['é', '3', 'None', '\0z'] },
      { name: 'OUT', datatype: 'INT32', shape: [2, 0], data: [] },
    ]);
  });

  test('responses carry parameters', async () => {
    const { outputs, parameters } = await infer('parameters');
    assert.deepEqual(outputs, out([5]));
    assert.deepEqual(parameters, { a: 1, b: true, c: 't' });
  });

  test('initialize is told what Triton tells; modules beside the model are found', async () => {
    const text = (await infer('arguments')).outputs?.[0]?.data[0];
    assert.deepEqual(JSON.parse(String(text)), {
      greeting: 'hello',
      is_directory: true,
      is_same_module: true,
      model_instance_device_id: '0',
      model_instance_kind: 'CPU',
      model_instance_name: 'modes_0_0',
      model_name: 'modes',
      model_repository: join(repository, 'modes'),
      model_version: '1',
    });
  });

  test('prints and log messages reach the log', async () => {
    for (const text of ['printed by the model', 'printed as an error', 'a warning of the model'])
      assert.ok(await server.waitForLog(new RegExp(text)), text);
  });

  test('async execute is waited for, batches, and fails with its text', async () => {
    const url = `${server.httpUrl}/v2/models/async_batch/infer`;
    const body = (number: number) => ({
      inputs: [{ name: 'IN', datatype: 'FP32', shape: [1, 2], data: [number, 1] }],
    });
    const half = async (bits: readonly [number, number]) => {
      const head = JSON.stringify({
        inputs: [{ name: 'IN', datatype: 'FP16', shape: [1, 2], parameters: { binary_data_size: 4 } }],
        parameters: { binary_data_output: true },
      });
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Inference-Header-Content-Length': String(head.length) },
        body: Buffer.concat([Buffer.from(head), Buffer.from(new Uint16Array(bits).buffer)]),
      });
      const data = Buffer.from(await response.arrayBuffer());
      if (response.status !== 200) return data.toString();
      return [data.readUInt16LE(data.length - 4), data.readUInt16LE(data.length - 2)];
    };
    assert.equal((await post(url, body(1))).status, 400);
    // 1 and 2 become 2 and 4 in half precision.
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => half([0x3c00, 0x4000])));
    for (const answer of answers) assert.deepEqual(answer, [0x4000, 0x4400]);
    assert.match(String(await half([0xbc00, 0])), /message: ValueError: negative\\n\\nAt:/);
  });

  async function stream(count: number): Promise<unknown[]> {
    const { text } = await post(`${server.httpUrl}/v2/models/async_stream/generate_stream`, { COUNT: count });
    const events = text.split('\n\n').filter((event) => event !== '');
    return events.map((event) => {
      const { INDEX, error } = JSON.parse(event.replace(/^data: /, '')) as { INDEX?: number; error?: string };
      return INDEX ?? error;
    });
  }

  test('decoupled async executions run side by side and end', async () => {
    const startMs = performance.now();
    const [first, ...others] = await Promise.all(Array.from({ length: 10 }, () => stream(10)));
    // One after another they would take ten times 200 ms.
    assert.ok(performance.now() - startMs < 1_500);
    assert.deepEqual(first, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const other of others) assert.deepEqual(other, first);
    assert.match(String(await stream(-1)), /message: ValueError: negative\n\nAt:/);
    assert.match(String(await stream(0)), /The model let go of the request without a final response/);
  });

  test('inputs that a model keeps stay as they were, and inputs that it gives back arrive', async () => {
    // Large enough to cross through memory.
    const COUNT = 12_000;
    async function ask(value: number, keep: boolean): Promise<void> {
      const tensor = (name: string, first: number) => {
        return { name, datatype: 'FP32', shape: [1, COUNT], data: Array(COUNT).fill(first) };
      };
      const body = { parameters: { keep }, inputs: [tensor('A', value), tensor('B', value + 0.5)] };
      const { text } = await post(`${server.httpUrl}/v2/models/keeps/infer`, body);
      const { error, outputs } = JSON.parse(text) as Answer;
      assert.equal(error, undefined);
      assert.deepEqual(
        outputs?.map(({ name, data }) => [name, [...new Set(data)], data.length]),
        [
          ['B_AS_IT_IS', [value + 0.5], COUNT],
          ['A_AND_ONE', [value + 1], COUNT],
          ['A_AS_IT_IS', [value], COUNT],
        ],
      );
    }
    // First one of many, then all.
    for (let i = 0; i < 30; i++) {
      const values = [0, 1, 2, 3].map((n) => i * 4 + n);
      await Promise.all(values.map((value) => ask(value, value === 80 || value > 100)));
    }
  });

  test('a crash costs its request, and the model comes back', async () => {
    assert.match((await infer('crashes')).error ?? '', /host process exited with code 7/);
    assert.deepEqual((await infer('answers_by_sender')).outputs, out([3]));
  });

  test('an unload calls finalize', async () => {
    await post(`${server.httpUrl}/v2/repository/models/modes/unload`, {});
    assert.ok(await server.waitForLog(/the model is finalized/));
  });

  test('a model that cannot be loaded says why', async () => {
    const file = (model: string, name: string) => join(repository, model, '1', name);
    assert.equal(
      await loadError(server, 'bad_initialize'),
      `RuntimeError: cannot start\n\nAt:\n  ${file('bad_initialize', 'model.py')}(12): initialize\n;\n`,
    );
    assert.match(await loadError(server, 'bad_syntax'), /^SyntaxError: .*\(model\.py, line 1\);\n$/);
    const texts = {
      bad_class: "AttributeError: module '1.model' has no attribute 'TritonPythonModel'",
      bad_completion:
        "auto_complete_config function in model 'bad_completion' must return a valid pb.ModelConfig object.",
      bad_name: 'Model name must end with \'.py\'. Model name is "model.txt".',
      bad_file: `Python model file not found in '${file('bad_file', 'absent.py')}'`,
    };
    for (const [model, text] of Object.entries(texts))
      assert.equal(await loadError(server, model), `${text};\n`);
  });
});

describe('the Python interpreter', { skip: pythonSkip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'nereid-bare-python-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function loadErrorWith(python: string): Promise<string> {
    cpSync(inRoot('test', 'e2e', 'python_models', 'modes'), join(repository, 'modes'), { recursive: true });
    const server = await start({ python });
    try {
      return await loadError(server, 'modes');
    } finally {
      await server.stop();
      rmSync(repository, { recursive: true, force: true });
    }
  }

  test('without numpy: the error says the command', async () => {
    execFileSync(PYTHON, ['-m', 'venv', '--without-pip', folder]);
    const python = join(folder, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python');
    assert.equal(
      await loadErrorWith(python),
      `the Python backend needs numpy, which ${python} does not have; ` +
        `install it with: ${python} -m pip install numpy;\n`,
    );
  });

  test('that does not exist: the error names it', async () => {
    assert.equal(
      await loadErrorWith('no-such-python'),
      "the Python interpreter 'no-such-python' was not found; " +
        'install Python 3.8 or newer, or name one with NEREID_PYTHON;\n',
    );
  });
});
