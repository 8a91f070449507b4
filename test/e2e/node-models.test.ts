// Models in JavaScript and TypeScript in a real server: the SDK, calls of other models, streams, errors, reload. The
// repository lies outside this package, as a user's does.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { decodeAnswer, encodeRequest, floatOf, GrpcClient } from '../support/grpc.ts';
import { call, waitUntil } from '../support/load.ts';
import { inRoot } from '../support/paths.ts';
import { type RunningServer, startServer } from '../support/server.ts';

interface Document {
  readonly error?: string;
  readonly id?: string;
  readonly parameters?: Record<string, unknown>;
  readonly outputs?: { name: string; datatype: string; shape: number[]; data: unknown[] }[];
}

const SERVED = ['echo', 'modes', 'slow', 'stream', 'chain', 'sum', 'upper', 'scaler', 'read_digit', 'digits'];
const hasTypes = Boolean((process.features as { typescript?: unknown }).typescript);

function makeRepository(): string {
  const path = mkdtempSync(join(tmpdir(), 'nereid-node-models-'));
  cpSync(inRoot('test', 'e2e', 'node_models'), path, { recursive: true });
  cpSync(join(path, 'modes'), join(path, 'slow'), { recursive: true });
  for (const name of ['scaler', 'read_digit', 'digits']) {
    cpSync(inRoot('examples', 'models', name), join(path, name), { recursive: true });
  }
  writeFileSync(
    join(path, 'modes', 'config.pbtxt'),
    'backend: "node" parameters { key: "k" value { string_value: "v" } }',
  );
  const shout = join(path, 'upper', 'node_modules', 'shout');
  mkdirSync(shout, { recursive: true });
  writeFileSync(join(shout, 'package.json'), '{ "name": "shout", "main": "index.js" }');
  writeFileSync(join(shout, 'index.js'), 'exports.shout = (text) => text.toUpperCase() + "!";');
  return path;
}

async function infer(server: RunningServer, model: string, body: object): Promise<Document> {
  const { text } = await call(server, { path: `/v2/models/${model}/infer`, body: JSON.stringify(body) });
  return JSON.parse(text) as Document;
}

const floats = (data: readonly number[]) => ({
  inputs: [{ name: 'X', datatype: 'FP32', shape: [1, data.length], data }],
});
const modeBody = (mode: string) => ({
  inputs: [{ name: 'MODE', datatype: 'BYTES', shape: [1], data: [mode] }],
});
const countBody = (count: number) => ({
  inputs: [{ name: 'COUNT', datatype: 'INT32', shape: [1], data: [count] }],
});
const bytesOf = (values: Float32Array | Int32Array) => Buffer.from(values.buffer);

describe('node models', () => {
  const repository = makeRepository();
  let server: RunningServer;
  let client: GrpcClient;

  before(async () => {
    const loads = SERVED.map((model) => `--load-model=${model}`);
    server = await startServer({
      repository,
      isGrpc: true,
      args: ['--model-control-mode=explicit', ...loads],
    });
    client = new GrpcClient(server.grpcAddress);
  });
  after(async () => {
    client?.close();
    await server?.stop();
    rmSync(repository, { recursive: true, force: true });
  });

  const inMode = (mode: string) => infer(server, 'modes', modeBody(mode));
  const textOf = async (mode: string) => {
    const { outputs, error } = await inMode(mode);
    return outputs?.[0]?.data ?? error;
  };

  async function loadError(files: Readonly<Record<string, string>>, model: string): Promise<string> {
    mkdirSync(join(repository, model, '1'), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(repository, model, '1', name), text);
    const { status, text } = await call(server, { path: `/v2/repository/models/${model}/load`, body: '{}' });
    assert.equal(status, 400, text);
    const { error } = JSON.parse(text) as { error: string };
    const start = `load failed for model '${model}': version 1 is at UNAVAILABLE state: `;
    assert.ok(error.startsWith(start), error);
    return error.slice(start.length, -2);
  }

  test('the definition completes the config', async () => {
    const { text } = await call(server, { path: '/v2/models/echo/config' });
    const config = JSON.parse(text) as Record<string, unknown>;
    assert.equal(config.backend, 'node');
    assert.equal(config.default_model_filename, 'model.mjs');
    assert.equal(config.max_batch_size, 8);
    assert.ok(config.dynamic_batching);
  });

  test('requests say who they are, responses carry parameters', async () => {
    const { id, parameters, outputs } = await infer(server, 'echo', {
      ...floats([1, 2.5]),
      id: 'r1',
      parameters: { n: 5, s: 'text', b: true, sequence_id: 7, sequence_start: true },
    });
    assert.deepEqual(outputs, [{ name: 'Y', datatype: 'FP32', shape: [1, 2], data: [1, 2.5] }]);
    assert.equal(id, 'r1');
    assert.deepEqual(parameters, { n: 5, s: 'text', b: true, id: 'r1', correlationId: 7, flags: 1 });
    assert.deepEqual((await inMode('parameters')).parameters, { i: 1, d: 0.5, s: 't', b: true });
  });

  test('many at once, small and large, over HTTP and gRPC', async () => {
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) => infer(server, 'echo', floats([i, i + 1]))),
    );
    answers.forEach(({ outputs }, i) => {
      assert.deepEqual(outputs?.[0]?.data, [i, i + 1]);
    });
    const values = Float32Array.from({ length: 300_000 }, (_, i) => i);
    const input = { name: 'X', datatype: 'FP32', shape: [1, values.length], bytes: bytesOf(values) };
    const { code, details, bytes } = await client.call('ModelInfer', encodeRequest('echo', [input]));
    assert.equal(code, 0, details);
    assert.ok(bytesOf(values).equals(decodeAnswer(bytes!).raw_output_contents[0]!));
  });

  test('a CommonJS model with a package of its own', async () => {
    const inputs = [{ name: 'TEXT', datatype: 'BYTES', shape: [2], data: ['a', 'é'] }];
    assert.deepEqual((await infer(server, 'upper', { inputs })).outputs?.[0]?.data, ['A!', 'É!']);
  });

  test('a chain: node asks ONNX, then node', async () => {
    const answers = await Promise.all([1, 2, 3].map((value) => infer(server, 'chain', floats([value]))));
    assert.deepEqual(
      answers.map(({ outputs }) => outputs?.[0]?.data),
      [[10], [20], [30]],
    );
    assert.deepEqual(answers[0]?.parameters, { id: 'c', version: 2 });
    const input = { name: 'X', datatype: 'FP32', shape: [1, 1], bytes: bytesOf(Float32Array.of(4)) };
    assert.equal(floatOf(await client.infer(encodeRequest('chain', [input]))), 40);
  });

  test('the example reads a digit from a picture', async () => {
    const png = readFileSync(inRoot('examples', 'images', 'seven.png')).toString('base64');
    const path = '/v2/models/read_digit/generate';
    const { text } = await call(server, { path, body: JSON.stringify({ PNG: png }) });
    const { DIGIT, SCORE } = JSON.parse(text) as { DIGIT: string; SCORE: number };
    assert.equal(DIGIT, 'seven');
    assert.ok(SCORE > 0.9);
    assert.match((await call(server, { path, body: '{"PNG":"x"}' })).text, /PNG must be a picture in base64/);
  });

  test('a decoupled model streams over server-sent events and gRPC', async () => {
    const { text } = await call(server, { path: '/v2/models/stream/generate_stream', body: '{"COUNT":4}' });
    const events = text.trim().split('\n\n');
    assert.deepEqual(
      events.map((event) => (JSON.parse(event.slice(6)) as { INDEX: number }).INDEX),
      [0, 1, 2, 3],
    );
    const input = { name: 'COUNT', datatype: 'INT32', shape: [1], bytes: bytesOf(Int32Array.of(3)) };
    const stream = client.stream().read();
    stream.send(encodeRequest('stream', [input], { id: 'a' }), encodeRequest('stream', [input], { id: 'b' }));
    const answers = await stream.received(6);
    await stream.end();
    for (const id of ['a', 'b']) {
      const own = answers.filter((answer) => answer.infer_response?.id === id);
      const indexes = own.map((answer) =>
        Buffer.from(answer.infer_response!.raw_output_contents[0]!).readInt32LE(),
      );
      assert.deepEqual(indexes, [0, 1, 2]);
    }
  });

  test('an error of a decoupled model ends its request alone', async () => {
    const path = '/v2/models/stream/generate_stream';
    assert.match((await call(server, { path, body: '{"COUNT":1000}' })).text, /"error":"too many"/);
  });

  test('a client that leaves a stream stops the model', async () => {
    const input = { name: 'COUNT', datatype: 'INT32', shape: [1], bytes: bytesOf(Int32Array.of(-1)) };
    const stream = client.stream().read();
    stream.send(encodeRequest('stream', [input]));
    await stream.received(2);
    stream.call.cancel();
    assert.ok(await server.waitForLog(/stream stream_0: stopped: true true/));
  });

  test('a model reads the stream of another, to its end or not', async () => {
    assert.deepEqual((await infer(server, 'sum', countBody(30))).outputs?.[0]?.data, [435]);
    assert.deepEqual((await infer(server, 'sum', countBody(-1))).outputs?.[0]?.data, [10]);
    assert.equal((await infer(server, 'sum', countBody(1000))).error, 'too many');
  });

  test('an exception reaches the client in short and the log in full', async () => {
    assert.equal((await inMode('throws')).error, "model 'modes' failed: TypeError: no cheese");
    assert.ok(await server.waitForLog(/modes modes_0: execute failed: TypeError: no cheese.*model\.mjs/s));
    assert.equal((await inMode('rejects')).error, "model 'modes' failed: RangeError: later");
  });

  test('a ModelError keeps its words and its code', async () => {
    const body = JSON.stringify(modeBody('refuses'));
    const refused = await call(server, { path: '/v2/models/modes/infer', body });
    assert.deepEqual([refused.status, refused.text], [400, '{"error":"not like this"}']);
    const later = await call(server, {
      path: '/v2/models/modes/infer',
      body: JSON.stringify(modeBody('returns_error')),
    });
    assert.deepEqual([later.status, later.text], [503, '{"error":"come back later"}']);
    assert.match(
      (await inMode('wrong_input')).error ?? '',
      /^the request has no input 'ABSENT'; it has: MODE$/,
    );
  });

  test('wrong answers are named', async () => {
    const texts = {
      wrong_count: "execute of model 'modes' returned 2 responses for 1 requests",
      wrong_return:
        "execute of model 'modes' must return an array with one response for each request, not string",
      no_outputs: "model 'modes' gave a response without 'outputs', an array of Tensors",
      wrong_name: "model 'modes' gave output 'Z', which its config does not have (OUT)",
      wrong_datatype: "model 'modes' gave output 'OUT' with datatype INT32; its config says BYTES",
      wrong_shape: "model 'modes' gave output 'OUT' with shape [1,1]; its config says [-1]",
      not_decoupled:
        "model 'modes' is not decoupled: return the response from execute, or set decoupled in its config",
    };
    for (const [mode, text] of Object.entries(texts)) assert.equal((await inMode(mode)).error, text);
  });

  test('calls: readiness, models that are not there, control, a signal, oneself', async () => {
    assert.deepEqual(await textOf('ready'), ['true', 'false', 'false']);
    assert.match(String(await textOf('absent_model')), /'absent' is not/);
    assert.deepEqual(await textOf('control'), ['false', 'true']);
    assert.deepEqual(await textOf('aborted_call'), ['TimeoutError']);
    assert.ok(await server.waitForLog(/slow slow_0: heard the end: true/));
    assert.match(String(await textOf('itself')), /is called while all of its 1 instances wait for this call/);
  });

  test('metrics of the model stand on the metrics port', async () => {
    assert.deepEqual(await textOf('metric'), ['3', '2.5']);
    const text = await (await fetch(server.metricsUrl)).text();
    assert.match(text, /^# HELP node_model_calls calls of the model$/m);
    assert.match(text, /^node_model_calls\{model="modes"\} 3/m);
    assert.match(text, /^node_model_level 2\.5/m);
    assert.match(text, /^node_model_size_bucket\{le="10"\} 1/m);
  });

  test('a client that goes away aborts the signal of its request', async () => {
    const abort = new AbortController();
    const pending = fetch(`${server.httpUrl}/v2/models/modes/infer`, {
      method: 'POST',
      body: JSON.stringify(modeBody('waits')),
      signal: abort.signal,
    });
    assert.ok(await server.waitForLog(/modes modes_0: waits for the end/));
    abort.abort();
    await assert.rejects(pending);
    assert.ok(await server.waitForLog(/modes modes_0: heard the end: true/));
  });

  test('an exit costs its request, and the model comes back', async () => {
    assert.match((await inMode('exits')).error ?? '', /host process exited with code 7/);
    assert.deepEqual(await textOf('ready'), ['true', 'false', 'false']);
  });

  test('initialize is told who it is; an unload waits for finalize', async () => {
    assert.ok(
      await server.waitForLog(/modes modes_0: initialized modes_0 modes:1 node \{\\?"k\\?":\\?"v\\?"\}/),
    );
    await call(server, { path: '/v2/repository/models/modes/unload', body: '{}' });
    assert.ok(await server.waitForLog(/modes modes_0: finalized/));
  });

  test('a file that is no model says why', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      [
        'const a = 1;',
        /^Internal: model\.mjs has no default export; write: export default defineModel\(\{ execute/,
      ],
      ['export default {};', /^Internal: model\.mjs has no default export/],
      [
        'export default { config: {} };',
        /^Internal: the default export of model\.mjs has no function 'execute'/,
      ],
      [
        'export default {\n  execute( {\n};',
        /^Internal: failed to load '.*model\.mjs': SyntaxError: .* \(model\.mjs:\d\)$/,
      ],
      ["import 'absent-package';", /^Internal: failed to load .*Cannot find package 'absent-package'/],
      ["\nthrow new Error('at the top');", /^Internal: failed to load .*Error: at the top \(model\.mjs:2\)$/],
      [
        "export default { execute() {}, initialize() { throw new Error('cannot start'); } };",
        /^Internal: initialize failed: Error: cannot start$/,
      ],
      [
        "export default { execute() {}, config: { inputs: [{ name: 'X', datatype: 'STRING', dims: [1] }] } };",
        /^Invalid argument: tensor 'X' in the config of model 'bad7' has datatype 'STRING'; it must be one of BOOL, /,
      ],
    ];
    for (const [i, [text, pattern]] of cases.entries()) {
      assert.match(await loadError({ 'model.mjs': text }, `bad${i}`), pattern);
    }
    writeFileSync(
      join(repository, 'modes', 'config.pbtxt'),
      'backend: "node" default_model_filename: "no.js"',
    );
    rmSync(join(repository, 'modes', '1', 'model.mjs'));
    assert.match(await loadError({}, 'modes'), /^Internal: there is no no\.js in '/);
  });

  const typed = `import { defineModel, Tensor, type InferRequest } from 'nereid/model';
interface Named { readonly name: string }
const rename = (request: InferRequest, { name }: Named): Tensor => request.input('X').rename(name);
export default defineModel({
  config: { inputs: [{ name: 'X', datatype: 'FP32', dims: [2] }], outputs: [{ name: 'Y', datatype: 'FP32', dims: [2] }] },
  execute: (requests) => requests.map((request) => ({ outputs: [rename(request, { name: 'Y' })] })),
});
`;

  test('a model in TypeScript', { skip: !hasTypes && 'this Node does not read TypeScript' }, async () => {
    mkdirSync(join(repository, 'typed', '1'), { recursive: true });
    writeFileSync(join(repository, 'typed', '1', 'model.ts'), typed);
    const loaded = await call(server, { path: '/v2/repository/models/typed/load', body: '{}' });
    assert.equal(loaded.status, 200, loaded.text);
    const inputs = [{ name: 'X', datatype: 'FP32', shape: [2], data: [1, 2] }];
    assert.deepEqual((await infer(server, 'typed', { inputs })).outputs?.[0]?.data, [1, 2]);
  });

  test('a model in TypeScript on a Node that cannot read it: the error says the command', {
    skip: hasTypes && 'this Node reads TypeScript',
  }, async () => {
    const error = await loadError({ 'model.ts': typed }, 'typed');
    assert.match(
      error,
      /^Unsupported: Node\.js \S+ does not read TypeScript: run the server with Node\.js 22\.18/,
    );
    assert.ok(error.includes(`cd ${join(repository, 'typed', '1')} && npx -p typescript tsc `), error);
  });
});

test('a changed file is served after the next poll, without a lost request', async () => {
  const repository = mkdtempSync(join(tmpdir(), 'nereid-node-poll-'));
  const file = join(repository, 'm', '1', 'model.mjs');
  const textWith = (factor: number) => `import { defineModel, Tensor } from 'nereid/model';
const tensor = (name) => ({ name, datatype: 'FP32', dims: [-1] });
export default defineModel({
  config: { maxBatchSize: 4, inputs: [tensor('X')], outputs: [tensor('Y')] },
  execute: (requests) => requests.map((request) => {
    const { data, shape } = request.input('X');
    return { outputs: [Tensor.from('Y', data.map((value) => value * ${factor}), shape)] };
  }),
});
`;
  mkdirSync(join(repository, 'm', '1'), { recursive: true });
  writeFileSync(file, textWith(2));
  const args = ['--model-control-mode=poll', '--repository-poll-secs=1'];
  const server = await startServer({ repository, args });
  try {
    const value = async () => (await infer(server, 'm', floats([3]))).outputs?.[0]?.data[0];
    assert.equal(await value(), 6);
    writeFileSync(file, textWith(7));
    const seen = new Set<unknown>();
    assert.ok(
      await waitUntil(async () => {
        const now = await value();
        seen.add(now);
        return now === 21;
      }),
    );
    assert.deepEqual([...seen].sort(), seen.has(6) ? [21, 6] : [21]);
  } finally {
    await server.stop();
    rmSync(repository, { recursive: true, force: true });
  }
});
