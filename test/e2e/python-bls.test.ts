// Python models that call other models of the server, load and unload them, and have metrics of their own, through the
// built server. The models are in python_models/ and in the conformance corpus.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';

interface Answer {
  readonly error?: string;
  readonly outputs?: { name: string; datatype: string; shape: number[]; data: unknown[] }[];
}

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const OWN = ['bls_steps', 'bls_sleep', 'bls_flood', 'bls_async', 'bls_chain', 'async_stream', 'metrics'];
const OF_CORPUS = ['nobatch', 'identity_fp32', 'versions_all', 'py_echo', 'py_bls'];
/** Codes of TritonError. */
const INTERNAL = 1;
const CANCELLED = 7;

describe('a Python model that calls the server', { skip: pythonSkip }, () => {
  const repository = mkdtempSync(join(tmpdir(), 'nereid-bls-'));
  let server: RunningServer;

  before(async () => {
    for (const model of [...OWN, 'bls_extra']) {
      cpSync(inRoot('test', 'e2e', 'python_models', model), join(repository, model), { recursive: true });
    }
    for (const model of OF_CORPUS) {
      cpSync(inRoot('test', 'conformance', 'models', model), join(repository, model), { recursive: true });
    }
    const loads = [...OWN, ...OF_CORPUS].map((model) => `--load-model=${model}`);
    server = await startServer({
      repository,
      args: ['--model-control-mode=explicit', ...loads],
      env: { NEREID_PYTHON: PYTHON },
    });
  });
  after(async () => {
    await server?.stop();
    rmSync(repository, { recursive: true, force: true });
  });

  async function infer(model: string, inputs: object[], signal?: AbortSignal): Promise<Answer> {
    const response = await fetch(`${server.httpUrl}/v2/models/${model}/infer`, {
      method: 'POST',
      body: JSON.stringify({ inputs }),
      ...(signal === undefined ? {} : { signal }),
    });
    return (await response.json()) as Answer;
  }

  /** Runs a function of the model and gives what it saw. */
  async function run(step: string, model = 'bls_steps'): Promise<unknown> {
    const inputs = [{ name: 'STEP', datatype: 'BYTES', shape: [1], data: [step] }];
    const { error, outputs } = await infer(model, inputs);
    assert.equal(error, undefined);
    return JSON.parse(String(outputs?.[0]?.data[0]));
  }

  const mode = (text: string) => [{ name: 'MODE', datatype: 'BYTES', shape: [1], data: [text] }];

  /** The metrics once they are as wanted. */
  async function untilScrape(isWanted: (text: string) => boolean): Promise<string> {
    for (const endMs = performance.now() + 5_000; ; await sleep(20)) {
      const text = await (await fetch(server.metricsUrl)).text();
      if (isWanted(text)) return text;
      assert.ok(performance.now() < endMs, text);
    }
  }

  function recorded(target: string, shape: number[], data: number[]): Promise<Answer> {
    return infer('py_bls', [
      { name: 'TARGET', datatype: 'BYTES', shape: [1], data: [target] },
      { name: 'DATA', datatype: 'FP32', shape, data },
    ]);
  }

  test('answers as a real Triton does', async () => {
    const result = (shape: number[], data: number[]) => [{ name: 'RESULT', datatype: 'FP32', shape, data }];
    assert.deepEqual(
      (await recorded('nobatch', [2, 3], [1, 2, 3, 4, 5, 6])).outputs,
      result([2, 3], [3, 5, 7, 9, 11, 13]),
    );
    assert.deepEqual((await recorded('versions_all:2', [1, 2], [1, 2])).outputs, result([1, 2], [21, 22]));
    assert.equal(
      (await recorded('nobatch', [1, 2], [1, 2])).error,
      "Model nobatch - Error when running inference: [request id: <id_unknown>] unexpected shape for input 'X' for model 'nobatch'. Expected [2,3], got [1,2]. ",
    );
  });

  test('chains models of several backends, with tensors of any size', async () => {
    const odd = [1, 3, 5, 7, 9, 11];
    assert.deepEqual(await run('chain_of_onnx_and_python'), [[[odd.slice(0, 3), odd.slice(3)]], {}]);
    assert.equal(await run('large_tensors'), true);
  });

  test('calls from many threads at once', async () => {
    assert.deepEqual(
      await run('many_threads'),
      Array.from({ length: 40 }, (_, i) => i),
    );
  });

  test('gets refusals and failures as responses with an error', async () => {
    const refused = (model: string, text: string) => ({
      code: INTERNAL,
      error: `Model ${model} - Error when running inference: ${text}`,
    });
    const seen = (await run('errors')) as { code: number; error: string }[];
    const notReady = (model: string) =>
      refused(model, `Failed for execute the inference request. Model '${model}' is not ready.`);
    assert.deepEqual(seen.slice(0, 4), [
      notReady('absent'),
      notReady('nobatch'),
      refused(
        'nobatch',
        "[request id: r7] unexpected shape for input 'X' for model 'nobatch'. Expected [2,3], got [1,2]. ",
      ),
      refused(
        'async_stream',
        "Model async_stream is using the decoupled. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'",
      ),
    ]);
    assert.equal(seen[4]?.code, INTERNAL);
    assert.match(
      seen[4]?.error ?? '',
      /^Failed to process the request\(s\) for model 'bls_sleep_0', message: ValueError: negative\n\nAt:/,
    );
  });

  test('reads the responses of a decoupled model, and again', async () => {
    // The last one is empty: the model said later that there is no other.
    assert.deepEqual(await run('stream'), [[[[0]], [[1]], [[2]], []], true]);
    assert.deepEqual(await run('stream_of_one'), [[[[1, 1]]]]);
  });

  test('reads a stream more slowly than it comes and loses nothing', async () => {
    assert.equal(await run('stream_read_slowly'), 400);
  });

  test('cancels a stream', async () => {
    assert.equal(await run('stream_cancelled'), CANCELLED);
  });

  test('says ids, flags, timeouts and parameters', async () => {
    const common = {
      request_id: 'inner',
      timeout: '9007199254740993',
      requested_output_names: ['SEEN'],
      parameters: { a: 1, b: true, big: '4611686018427387904', c: 't' },
    };
    assert.deepEqual(await run('request_fields'), [
      { ...common, correlation_id: '18446744073709551615', flags: 3 },
      { ...common, correlation_id: 'abc', flags: 0 },
    ]);
  });

  test('that waits for itself is refused once all instances wait', async () => {
    const text = JSON.stringify(await run('itself'));
    assert.match(
      text,
      /Model bls_steps - Error when running inference: model 'bls_steps' is called while all of its 2 instances wait for this call/,
    );
    const { outputs } = await infer('bls_chain', mode('again'));
    assert.match(
      String(outputs?.[0]?.data[0]),
      /model 'bls_chain' is called while all of its 1 instances wait for this call/,
    );
  });

  test('calls from coroutines, its own and those of an asynchronous execute', async () => {
    assert.deepEqual(await run('own_event_loop'), [1, 2]);
    const body = (value: number) => [
      { name: 'INPUT0', datatype: 'FP32', shape: [1, 2], data: [value, value] },
    ];
    const answers = await Promise.all([1, 2, 3, 4].map((value) => infer('bls_async', body(value))));
    // 0 + 1 + 2 + 3 come from the stream.
    assert.deepEqual(
      answers.map(({ outputs }) => outputs?.[0]?.data),
      [1, 2, 3, 4].map((value) => [value + 6, value + 6]),
    );
  });

  test('loads, unloads and looks after models', async () => {
    const [isReadyBefore, isOtherReady, isReady, isReadyAfter, ...texts] = (await run(
      'control',
    )) as unknown[];
    assert.deepEqual([isReadyBefore, isOtherReady, isReady, isReadyAfter], [false, true, true, false]);
    const failed = "Failed to process the request for model 'bls_steps_0_N', message: ";
    assert.deepEqual(
      texts.map((text) => String(text).replace(/bls_steps_0_\d/, 'bls_steps_0_N')),
      [
        `Failed to load model: ${failed}failed to load 'absent', failed to poll from model repository`,
        `Failed to check model readiness: ${failed}failed to get model version from specified version string 'x' (details: stol), version should be an integral value > 0`,
      ],
    );
    // Its metrics went with its host.
    await untilScrape((text) => !text.includes('bls_extra_loads'));
    assert.ok(await server.waitForLog(/in finalize: BLS is only supported during the 'execute' function\./));
    assert.ok(await server.waitForLog(/in finalize: Failed to load model: .*supported/));
  });

  test('may not call in initialize', async () => {
    assert.ok(
      await server.waitForLog(
        /model\.py:\d+\] in initialize: BLS is only supported during the 'execute' function\./,
      ),
    );
  });

  test('whose client goes away: what it called for it stops', async () => {
    for (const [index, step] of ['sleeps', 'sleeps_in_a_thread'].entries()) {
      const client = new AbortController();
      const inputs = [{ name: 'STEP', datatype: 'BYTES', shape: [1], data: [step] }];
      const answer = infer('bls_steps', inputs, client.signal);
      await sleep(300);
      client.abort();
      await assert.rejects(answer);
      assert.ok(await server.waitForLog(new RegExp(`(?:slept, cancelled[\\s\\S]*){${index + 1}}`)), step);
    }
  });

  test('that dies in a call costs that request, and what it called stops', async () => {
    const { error } = await infer('bls_chain', mode('dies'));
    assert.match(
      error ?? '',
      /instance 'bls_chain_0' .* ended unexpectedly: host process exited with code 9/,
    );
    assert.ok(await server.waitForLog(/(?:slept, cancelled[\s\S]*){3}/));
  });

  test('whose called model dies gets an error, and both come back', async () => {
    const { error } = (await run('inner_dies')) as { error: string };
    assert.match(error, /instance 'bls_sleep_0' .* ended unexpectedly: host process exited with code 5/);
    assert.equal(((await run('errors')) as unknown[]).length, 5);
  });

  test('has metrics of its own', async () => {
    assert.deepEqual(await run('change', 'metrics'), [3.5, 5]);
    const text = await untilScrape(() => true);
    for (const line of [
      '# HELP py_requests Requests',
      '# TYPE py_requests counter',
      'py_requests{b="2",model="metrics"} 3.5',
      'py_level 5',
      'py_sizes_bucket{le="0.5"} 1',
      'py_sizes_bucket{le="+Inf"} 3',
      'py_sizes_sum 100.75',
    ]) {
      assert.ok(text.split('\n').includes(line), `${line} in\n${text.slice(-1500)}`);
    }
    const failed = "Failed to process the request for model 'metrics_0', message: ";
    const kind = 'TRITONSERVER_METRIC_KIND_';
    assert.deepEqual(await run('wrong', 'metrics'), [
      `Failed to increment metric value: ${failed}${kind}COUNTER can only be incremented monotonically by non-negative values.`,
      `Failed to set metric value: ${failed}${kind}COUNTER does not support Set`,
      `Failed to observe metric value: ${failed}${kind}GAUGE does not support Observe`,
      `Failed to increment metric value: ${failed}${kind}HISTOGRAM does not support Increment`,
      `Failed to get metric value: ${failed}${kind}HISTOGRAM does not support Value`,
      `Error when creating MetricFamily: ${failed}Family name already exists with different type`,
      `Error when creating MetricFamily: ${failed}Invalid metric name`,
      `Error when creating Metric: ${failed}Invalid label name`,
      'Failed to create metric. Labels must be a dictionary.',
      'Failed to create metric. Unexpected buckets found.',
      'Failed to create metric. Missing required buckets.',
      'Failed to create metric. Buckets must be a list.',
      `Error when creating Metric: ${failed}Bucket Boundaries must be strictly sorted`,
    ]);
    const gone =
      "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should be deleted AFTER its corresponding 'Metric' objects have been deleted.";
    assert.deepEqual(await run('delete', 'metrics'), [
      `Failed to get metric value: ${gone}`,
      `Failed to set metric value: ${gone}`,
    ]);
    await untilScrape((left) => !left.includes('py_level'));
  });
});
