// Binary inference requests whose lengths are wrong in every possible way, and the inputs on which a real Triton
// dies: each is answered with an error, and the server goes on.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { call, inferNow } from '../support/load.ts';
import { type RawAnswer, RawConnection } from '../support/raw-connection.ts';
import {
  addExample,
  addIdentity,
  createRepository,
  identityBody,
  type TestRepository,
} from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const ANSWER_MS_MAX = 1000;
const JSON_HEAD = JSON.stringify({
  inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 4], parameters: { binary_data_size: 16 } }],
  outputs: [{ name: 'OUTPUT0', parameters: { binary_data: false } }],
});
const FULL = Buffer.concat([Buffer.from(JSON_HEAD), Buffer.from(new Float32Array([1, 2, 3, 4]).buffer)]);

function isError(answer: RawAnswer | undefined): boolean {
  if (answer === undefined || answer.status < 400) return false;
  return typeof (JSON.parse(answer.body) as { error: unknown }).error === 'string';
}

describe('wrong lengths', () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'echo' });
    addIdentity(repository, { name: 'texts', type: 'TYPE_STRING' });
    addExample(repository, { name: 'tokens', example: 'tokens' });
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  const head = (headers: string) => `POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;

  /** Sends on the open connection, or on a new one when the server closed it. */
  class Exchange {
    connection = new RawConnection(server);

    async send(...parts: (string | Buffer)[]): Promise<RawAnswer | undefined> {
      if (this.connection.isClosed) this.connection = new RawConnection(server);
      this.connection.send(...parts);
      return this.connection.answer(ANSWER_MS_MAX);
    }
  }

  test('a body of every length', async () => {
    const exchange = new Exchange();
    const padded = Buffer.concat([FULL, Buffer.alloc(8)]);
    for (let length = 0; length <= padded.length; length++) {
      const headers = `Inference-Header-Content-Length: ${JSON_HEAD.length}\r\nContent-Length: ${length}`;
      const answer = await exchange.send(head(headers), padded.subarray(0, length));
      if (length === FULL.length) assert.equal(answer?.status, 200, answer?.body);
      else assert.ok(isError(answer), `body of ${length} bytes: ${answer?.status} ${answer?.body}`);
    }
    exchange.connection.destroy();
    assert.equal((await inferNow(server, 'echo', identityBody(5)))[0], 5);
  });

  test('a JSON length of every size, and of no size', async () => {
    const exchange = new Exchange();
    const lengths = Array.from({ length: FULL.length + 9 }, (_, i) => String(i));
    for (const length of [...lengths, '-1', '1e3', '99999999999999999999', '0x10', '+5']) {
      const headers = `Inference-Header-Content-Length: ${length}\r\nContent-Length: ${FULL.length}`;
      const answer = await exchange.send(head(headers), FULL);
      if (length === String(JSON_HEAD.length)) assert.equal(answer?.status, 200, answer?.body);
      // A JSON length of 0, or one that is no number, means that the whole body is one raw tensor.
      else if (answer?.status !== 200) {
        assert.ok(isError(answer), `JSON of ${length} bytes: ${answer?.status} ${answer?.body}`);
      }
    }
    exchange.connection.destroy();
    assert.equal((await inferNow(server, 'echo', identityBody(5)))[0], 5);
  });

  test('chunked bodies of every length', async () => {
    const exchange = new Exchange();
    const padded = Buffer.concat([FULL, Buffer.alloc(8)]);
    for (let length = 0; length <= padded.length; length += 3) {
      const total = Math.abs(length - FULL.length) < 3 ? FULL.length : length;
      const parts: (string | Buffer)[] = [];
      for (let at = 0; at < total; at += 50) {
        const piece = padded.subarray(at, Math.min(at + 50, total));
        parts.push(`${piece.length.toString(16)}\r\n`, piece, '\r\n');
      }
      const headers = `Inference-Header-Content-Length: ${JSON_HEAD.length}\r\nTransfer-Encoding: chunked`;
      const answer = await exchange.send(head(headers), ...parts, '0\r\n\r\n');
      if (total === FULL.length) assert.equal(answer?.status, 200, answer?.body);
      else assert.ok(isError(answer), `chunks of ${total} bytes: ${answer?.status} ${answer?.body}`);
    }
    exchange.connection.destroy();
    assert.equal((await inferNow(server, 'echo', identityBody(5)))[0], 5);
  });

  test('huge declared sizes are refused without the bytes', async () => {
    for (const length of ['5000000000', '9007199254740993', '99999999999999999999999']) {
      const connection = new RawConnection(server);
      connection.send(head(`Content-Length: ${length}`), 'x');
      const answer = await connection.answer(ANSWER_MS_MAX);
      assert.ok(answer === undefined || isError(answer), `${length}: ${answer?.status} ${answer?.body}`);
      connection.destroy();
    }
  });

  test('shapes that are huge, negative or overflow', async () => {
    const shapes = [
      [1, 2 ** 31],
      [1, 2 ** 53],
      [1, -1],
      [2 ** 32, 2 ** 32],
      [1, '9223372036854775807'],
      [1, 1e300],
    ];
    for (const shape of shapes) {
      for (const source of [{ data: [1] }, { parameters: { binary_data_size: 4 } }]) {
        const json = JSON.stringify({ inputs: [{ name: 'INPUT0', datatype: 'FP32', shape, ...source }] });
        const answer = await call(server, {
          path: '/v2/models/echo/infer',
          headers: 'data' in source ? {} : { 'Inference-Header-Content-Length': json.length },
          body: 'data' in source ? json : Buffer.concat([Buffer.from(json), Buffer.alloc(4)]),
        });
        assert.ok(answer.status >= 400, `shape ${shape}: ${answer.status} ${answer.text}`);
        assert.equal(typeof (JSON.parse(answer.text) as { error: unknown }).error, 'string');
      }
    }
  });

  test('classification of text and of nothing', async () => {
    const outputs = [{ name: 'OUTPUT0', parameters: { classification: 2 } }];
    const text = { name: 'INPUT0', datatype: 'BYTES', shape: [1, 2], data: ['a', 'b'] };
    const empty = { name: 'INPUT0', datatype: 'FP32', shape: [1, 0], data: [] };
    for (const [model, input] of [
      ['texts', text],
      ['echo', empty],
    ] as const) {
      const body = JSON.stringify({ inputs: [input], outputs });
      const answer = await call(server, { path: `/v2/models/${model}/infer`, body });
      assert.notEqual(answer.status, 0, `${model} broke the connection`);
      JSON.parse(answer.text);
    }
    assert.equal((await inferNow(server, 'echo', identityBody(5)))[0], 5);
    assert.equal((await call(server, { path: '/v2/health/ready' })).status, 200);
  });
});
