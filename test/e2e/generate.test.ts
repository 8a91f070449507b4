// generate and generate_stream against a real server: an ordinary model, a text model and a decoupled one, byte by
// byte on the wire, and what becomes of the model's work when the client goes away.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { get as httpGet, request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { call } from '../support/load.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const REPEAT_CONFIG = `backend: "repeat"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [
  { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
]
output [
  { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
`;

const TEXT_CONFIG = `backend: "identity"
max_batch_size: 0
input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]
`;

function addModel(repository: TestRepository, name: string, config: string): void {
  mkdirSync(repository.at(name, '1'), { recursive: true });
  writeFileSync(repository.at(name, 'config.pbtxt'), config);
}

interface StreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Each `data:` event, and when it came. */
  readonly events: { readonly json: unknown; readonly atMs: number }[];
}

/** Reads events as they come; with `eventCountMax` the client goes away after so many. */
function stream(
  server: RunningServer,
  call: { model: string; body: string; eventCountMax?: number },
): Promise<StreamAnswer> {
  return new Promise((resolve, reject) => {
    const path = `/v2/models/${call.model}/generate_stream`;
    const outgoing = request(`${server.httpUrl}${path}`, { method: 'POST', agent: false }, (response) => {
      const answer: StreamAnswer = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        events: [],
      };
      let rest = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        const parts = (rest + text).split('\n\n');
        rest = parts.pop() ?? '';
        for (const part of parts) {
          assert.ok(part.startsWith('data: '), part);
          answer.events.push({ json: JSON.parse(part.slice(6)), atMs: performance.now() });
          if (answer.events.length === call.eventCountMax) {
            resolve(answer);
            outgoing.destroy();
          }
        }
      });
      response.on('end', () => resolve(answer));
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(call.body);
  });
}

function repeatBody(values: number[], delayMs = 0, more: object = {}): string {
  return JSON.stringify({ IN: values, DELAY: values.map(() => delayMs), WAIT: 0, ...more });
}

describe('generate', () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'numbers' });
    addModel(repository, 'text', TEXT_CONFIG);
    addModel(repository, 'repeat', REPEAT_CONFIG);
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  const generate = (model: string, body: string) =>
    call(server, { path: `/v2/models/${model}/generate`, body });

  test('maps members to inputs and outputs to members', async () => {
    const numbers = await generate('numbers', '{"INPUT0":[1,2.5,-3],"id":"a","temperature":0.5}');
    assert.equal(numbers.status, 200);
    assert.equal(
      numbers.text,
      '{"OUTPUT0":[1.0,2.5,-3.0],"id":"a","model_name":"numbers","model_version":"1"}',
    );
    const text = await generate('text', '{"INPUT0":"é 日本 😀\\n"}');
    assert.equal(text.text, '{"OUTPUT0":"é 日本 😀\\n","model_name":"text","model_version":"1"}');
  });

  test('an empty array stays one', async () => {
    const { text } = await generate('numbers', '{"INPUT0":[]}');
    assert.equal(text, '{"OUTPUT0":[],"model_name":"numbers","model_version":"1"}');
  });

  test('of a decoupled model takes one response, no other number', async () => {
    const one = await generate('repeat', repeatBody([7]));
    assert.equal(one.text, '{"IDX":0,"OUT":7,"model_name":"repeat","model_version":"1"}');
    for (const values of [[], [7, 8, 9]]) {
      const other = await generate('repeat', repeatBody(values));
      assert.equal(other.status, 200);
      assert.match(other.text, /^\{"error":"generate expects model to produce exactly 1 response, use /);
    }
  });

  test('refusals are plain JSON on both endpoints', async () => {
    for (const action of ['generate', 'generate_stream']) {
      const cases: [string, number, RegExp][] = [
        ['text', 400, /expected 1 inputs but got 0 inputs for model 'text'/],
        ['nothing', 404, /Request for unknown model: 'nothing' is not found/],
        ['text/versions/3', 404, /Request for unknown model: 'text' version 3 is not found/],
      ];
      for (const [model, status, message] of cases) {
        const response = await fetch(`${server.httpUrl}/v2/models/${model}/${action}`, {
          method: 'POST',
          body: '{}',
        });
        assert.equal(response.status, status);
        assert.equal(response.headers.get('content-type'), 'application/json');
        assert.ok(response.headers.has('content-length'));
        assert.match(await response.text(), message);
      }
    }
  });

  test('any other method is refused as JSON', async () => {
    const response = await new Promise<{ status?: number | undefined; type?: string | undefined }>(
      (resolve) => {
        httpGet(`${server.httpUrl}/v2/models/text/generate_stream`, { agent: false }, (incoming) => {
          incoming.resume();
          resolve({ status: incoming.statusCode, type: incoming.headers['content-type'] });
        });
      },
    );
    assert.deepEqual(response, { status: 405, type: 'application/json' });
  });

  test('a stream is one event for each response, each sent when it is there', async () => {
    const startMs = performance.now();
    const answer = await stream(server, { model: 'repeat', body: repeatBody([5, 6, 7], 150, { id: 'r' }) });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8');
    assert.equal(answer.headers['transfer-encoding'], 'chunked');
    assert.deepEqual(
      answer.events.map(({ json }) => json),
      [5, 6, 7].map((OUT, IDX) => ({ IDX, OUT, id: 'r', model_name: 'repeat', model_version: '1' })),
    );
    // Events that are held back come together; these are 150 ms apart.
    const [first, , last] = answer.events.map(({ atMs }) => atMs - startMs);
    assert.ok(last! - first! > 150, `the events came at ${first} and ${last} ms`);
  });

  test('a model that is not decoupled streams its one response', async () => {
    const { events } = await stream(server, { model: 'numbers', body: '{"INPUT0":[1]}' });
    assert.deepEqual(
      events.map(({ json }) => json),
      [{ OUTPUT0: 1, model_name: 'numbers', model_version: '1' }],
    );
  });

  test('a stream of no response is empty', async () => {
    const answer = await stream(server, { model: 'repeat', body: repeatBody([]) });
    assert.deepEqual([answer.status, answer.events], [200, []]);
  });

  test('a client that goes away ends the work of the model: the server has nothing to wait for', async () => {
    const values = Array.from({ length: 500 }, (_, i) => i);
    // Fifty seconds of work, more than the server waits for at its end.
    const body = repeatBody(values, 100);
    const { events } = await stream(server, { model: 'repeat', body, eventCountMax: 3 });
    assert.equal(events.length, 3);
    assert.equal((await generate('numbers', '{"INPUT0":4}')).status, 200);
    assert.equal((await server.stop()).code, 0, server.logs());
  });
});
