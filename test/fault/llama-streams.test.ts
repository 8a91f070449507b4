// Many streams of one llama model, and what goes wrong with them: clients that vanish or do not read, a full queue, a host
// that is killed, a model that is unloaded. Each stream is made to write a token of its own, so that nobody can get
// another's text unnoticed.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EventStream } from '../support/event-stream.ts';
import {
  decodeStreamAnswer,
  encodeRequest,
  framed,
  openRaw,
  openSession,
  rawAnswer,
} from '../support/grpc.ts';
import {
  addLlama,
  findGguf,
  joined,
  LlamaClient,
  metricOf,
  type Question,
  textOf,
  writeConfig,
} from '../support/llama.ts';
import { call, waitUntil } from '../support/load.ts';
import { childrenOf, isAlive, procSkip, titleOf } from '../support/processes.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const STREAMS = 64;
const PARAMETERS = { max_running: 64, threads: 1, context_length: 512, kv_cells: 4096 };
/** Whole words of the vocabulary begin here; each stream is forced to repeat one. */
const FIRST_TOKEN = 2000;
const gguf = procSkip === false ? await findGguf() : { reason: procSkip };

describe('streams of a llama model', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: LlamaClient;
  let words: string[];

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const { file } = gguf;
    addLlama(repository, { name: 'smol', file, parameters: PARAMETERS });
    addLlama(repository, {
      name: 'narrow',
      file,
      parameters: { ...PARAMETERS, max_running: 1, max_waiting: 2 },
    });
    const args = ['--model-control-mode=explicit', '--load-model=*'];
    server = await startServer({ repository: repository.path, args, isGrpc: true });
    client = new LlamaClient(server, 'smol');
    words = await Promise.all(Array.from({ length: STREAMS }, (_, i) => wordOf(FIRST_TOKEN + i)));
    assert.equal(new Set(words).size, STREAMS);
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  async function wordOf(token: number): Promise<string> {
    const json = textOf(await client.generate({ tokenize_request: JSON.stringify({ tokens: [token] }) }));
    return (JSON.parse(json) as { text: string }).text;
  }

  /** Writes its own word so many times. */
  function question(stream: number, count: number, extra: Readonly<Record<string, unknown>> = {}): Question {
    return {
      text_input: `Stream number ${stream} says`,
      sampling: { temperature: 0, max_tokens: count, logit_bias: { [FIRST_TOKEN + stream]: 100 }, ...extra },
      return_finish_reason: true,
    };
  }

  const open = (stream: number, count: number, model = 'smol') =>
    new EventStream(server, model, question(stream, count));

  async function requireWhole(stream: EventStream, index: number, count: number): Promise<void> {
    assert.equal(await stream.ended, 200);
    assert.equal(joined(stream.events), words[index]!.repeat(count));
    const reasons = stream.events.map(({ finish_reason }) => finish_reason);
    assert.deepEqual([reasons.at(-1), reasons.filter((reason) => reason !== 'None').length], ['length', 1]);
  }

  /** Nothing runs or waits, and only kept prefixes are in the cache. */
  async function requireIdle(model = 'smol'): Promise<void> {
    const look = async () => {
      const names = ['requests_running', 'requests_waiting', 'kv_cells_used', 'kv_cells_cached'];
      // The metrics of a host go with it, and come back with the next.
      return Promise.all(
        names.map((name) => metricOf(server, `nv_llm_${name}`, model).catch(() => Number.NaN)),
      );
    };
    let seen: number[] = [];
    const isIdle = async () => {
      seen = await look();
      return seen[0] === 0 && seen[1] === 0 && seen[2] === seen[3];
    };
    assert.ok(await waitUntil(isIdle), `running, waiting, cells used, cells kept: ${seen}`);
    const pending = await metricOf(server, 'nv_inference_pending_request_count', model);
    assert.equal(pending, 0);
  }

  test('64 at once all end, each with its own text', async () => {
    const streams = Array.from({ length: STREAMS }, (_, i) => open(i, 6));
    await Promise.all(streams.map((stream, i) => requireWhole(stream, i, 6)));
    await requireIdle();
  });

  test('of 64 half vanish in the middle: the others end well, and the cells are free', async () => {
    const streams = Array.from({ length: STREAMS }, (_, i) => open(i, i % 2 === 0 ? 12 : 400));
    const leaving = streams.filter((_, i) => i % 2 === 1);
    await Promise.all(leaving.map((stream) => stream.received(2)));
    for (const stream of leaving) stream.destroy();
    await Promise.all(streams.map((stream, i) => (i % 2 === 0 ? requireWhole(stream, i, 12) : undefined)));
    await requireIdle();
    const text = await (await fetch(server.metricsUrl)).text();
    const aborted = /nv_llm_requests_finished_total\{finished_reason="abort",[^}]*\} (\d+)/.exec(text);
    assert.equal(aborted?.[1], String(STREAMS / 2));
  });

  test('one that is not read does not stop the others, and has its whole text later', async () => {
    const choices = 16;
    const count = 44;
    // Of what nobody reads the window of 64 KiB and the queue of the stream hold 1.1 MB; this is 1.4.
    const session = openSession(server.grpcAddress);
    const slow = openRaw(session, { method: 'ModelStreamInfer' });
    const sampling = { ...question(1, count).sampling, n: choices, logprobs: 20, logprobs_format: 'openai' };
    const request = encodeRequest('smol', [
      ...['stream', 'return_logprobs'].map(flagTensor),
      textTensor('text_input', 'Nobody reads'),
      textTensor('sampling_parameters', JSON.stringify(sampling)),
    ]);
    slow.end(framed(request));
    const isRunning = async () => (await metricOf(server, 'nv_llm_requests_running', 'smol')) >= choices;
    assert.ok(await waitUntil(isRunning), 'the slow one does not run');
    for (const i of [2, 3, 4]) await requireWhole(open(i, 6), i, 6);
    await requireEngineIdle();
    const answers = messagesOf((await rawAnswer(slow)).body).map(decodeStreamAnswer);
    let tokens = 0;
    let texts = Array<string>(choices).fill('');
    for (const { infer_response, error_message } of answers) {
      assert.equal(error_message, '');
      const { outputs, raw_output_contents } = infer_response!;
      const output = (name: string) =>
        stringsOf(Buffer.from(raw_output_contents[outputs.findIndex((one) => one.name === name)]!));
      const pieces = output('text_output');
      texts = texts.map((text, i) => text + pieces[i]!);
      for (const json of output('logprobs')) tokens += (JSON.parse(json) as unknown[]).length;
    }
    assert.deepEqual(texts, Array(choices).fill(words[1]!.repeat(count)));
    assert.equal(tokens, choices * count);
    assert.ok(answers.length < count, `${answers.length} responses: it was never asked to wait`);
    session.close();
    await requireIdle();
  });

  async function requireEngineIdle(): Promise<void> {
    const isIdle = async () => (await metricOf(server, 'nv_llm_requests_running', 'smol')) === 0;
    assert.ok(await waitUntil(isIdle, 60_000), 'the engine waits for the reader');
  }

  test('more than the queue takes are refused at once, and the others are answered', async () => {
    const narrow = new LlamaClient(server, 'narrow');
    // Runs until all has been tried; the two others wait.
    const long = open(0, 300, 'narrow');
    await long.received(1);
    const waiting = open(1, 40, 'narrow');
    const leaving = open(2, 40, 'narrow');
    const isFull = async () => (await metricOf(server, 'nv_llm_requests_waiting', 'narrow')) === 2;
    assert.ok(await waitUntil(isFull), 'the queue is not full');
    const error =
      "2 requests wait already; ask again later, or raise the parameter 'max_waiting' of the model's config";
    assert.deepEqual(await narrow.error(question(9, 1)), { status: 503, error });
    const refused = await narrow.post('generate_stream', { ...question(9, 1), stream: true });
    assert.deepEqual([refused.status, refused.text], [503, `data: {"error":"${error}"}\n\n`]);
    assert.deepEqual(await narrow.error(question(9, 1, { n: 3 })), {
      status: 400,
      error:
        "sampling parameter 'n' is 3, but only 2 texts may wait; raise the parameter 'max_waiting' of the model's config",
    });
    // One that waits goes away and makes room.
    leaving.destroy();
    const hasRoom = async () => (await metricOf(server, 'nv_llm_requests_waiting', 'narrow')) === 1;
    assert.ok(await waitUntil(hasRoom), 'its place is not free');
    const late = open(9, 2, 'narrow');
    await requireWhole(long, 0, 300);
    await requireWhole(waiting, 1, 40);
    await requireWhole(late, 9, 2);
    assert.equal(leaving.events.length, 0);
    assert.equal(await narrow.text(question(9, 2)), words[9]!.repeat(2));
    await requireIdle('narrow');
  });

  test('the host killed in the middle: open streams end with the reason, the engine is back by itself', async () => {
    const host = hostOf('smol');
    const streams = Array.from({ length: 16 }, (_, i) => open(i, 400));
    await Promise.all(streams.map((stream) => stream.received(2)));
    let isLive = true;
    const watch = setInterval(() => {
      void call(server, { path: '/v2/health/live' }).then(({ status }) => {
        isLive &&= status === 200;
      });
    }, 20);
    process.kill(host, 'SIGKILL');
    for (const stream of streams) {
      assert.equal(await stream.ended, 200);
      const errors = stream.events.filter(({ error }) => error !== undefined);
      assert.equal(errors.length, 1);
      assert.match(errors[0]!.error!, /instance 'smol_0(?:_0)?' of model 'smol'.*SIGKILL/);
      assert.equal(stream.events.at(-1), errors[0]);
    }
    // Nobody has asked the new host for anything.
    await requireIdle();
    const narrow = open(5, 3, 'narrow');
    assert.equal(await client.text(question(7, 3)), words[7]!.repeat(3));
    await requireWhole(narrow, 5, 3);
    clearInterval(watch);
    assert.ok(isLive, 'the server was not live all the time');
    assert.notEqual(hostOf('smol'), host);
    await requireIdle();
  });

  function hostOf(model: string): number {
    const named = childrenOf(server.pid).filter((pid) => titleOf(pid).includes(` ${model}:`));
    assert.equal(named.length, 1, `${named.length} hosts of ${model}`);
    return named[0]!;
  }

  test('loaded anew while streams run: they end whole, and the next are served by the new host', async () => {
    const host = hostOf('smol');
    const streams = Array.from({ length: 4 }, (_, i) => open(i, 30));
    await Promise.all(streams.map((stream) => stream.received(2)));
    writeConfig(repository, { name: 'smol', parameters: { ...PARAMETERS, max_running: 8 } });
    const load = await call(server, { path: '/v2/repository/models/smol/load', body: '', msMax: 60_000 });
    assert.equal(load.status, 200, load.text);
    await Promise.all(streams.map((stream, i) => requireWhole(stream, i, 30)));
    await requireWhole(open(6, 3), 6, 3);
    assert.ok(await waitUntil(() => !isAlive(host)), 'the old host is still there');
    assert.notEqual(hostOf('smol'), host);
  });

  test('unloaded while streams run: they end whole, new ones are refused', async () => {
    const streams = Array.from({ length: 4 }, (_, i) => open(i, 30));
    await Promise.all(streams.map((stream) => stream.received(2)));
    const unload = call(server, { path: '/v2/repository/models/smol/unload', body: '', msMax: 60_000 });
    const isRefused = async () => [400, 404].includes((await client.post('generate', question(9, 1))).status);
    assert.ok(await waitUntil(isRefused), 'new requests are taken');
    await Promise.all(streams.map((stream, i) => requireWhole(stream, i, 30)));
    assert.equal((await unload).status, 200);
    const isGone = async () => childrenOf(server.pid).length === 1;
    assert.ok(await waitUntil(isGone), 'the host is still there');
  });

  test('at the end of the server they end whole, and nothing is left', async () => {
    const hosts = childrenOf(server.pid);
    const streams = [open(3, 20, 'narrow'), open(4, 20, 'narrow')];
    await streams[0]!.received(2);
    const exit = server.stop('SIGTERM');
    await requireWhole(streams[0]!, 3, 20);
    await requireWhole(streams[1]!, 4, 20);
    assert.deepEqual(await exit, { code: 0, signal: null });
    assert.deepEqual(hosts.filter(isAlive), []);
  });
});

function textTensor(name: string, text: string) {
  const bytes = Buffer.alloc(4 + Buffer.byteLength(text));
  bytes.writeUInt32LE(bytes.length - 4);
  bytes.write(text, 4);
  return { name, datatype: 'BYTES', shape: [1], bytes };
}

function flagTensor(name: string) {
  return { name, datatype: 'BOOL', shape: [1], bytes: Buffer.of(1) };
}

/** Of a gRPC body: a flag, a length and a message, again and again. */
function messagesOf(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    messages.push(body.subarray(at + 5, end));
    at = end;
  }
  return messages;
}

function stringsOf(bytes: Buffer): string[] {
  const strings: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32LE(at);
    strings.push(bytes.toString('utf8', at + 4, end));
    at = end;
  }
  return strings;
}
