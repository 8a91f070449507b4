// What clients of generate and generate_stream get for any order of responses and errors, over a real connection.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import { internal, invalidArgument, unavailable } from '../../domain/status.ts';
import { GenerateSink, GenerateStreamSink } from './generate-sink.ts';
import { type Answer, Client, serve, until } from './test-loopback.ts';

const REQUEST = 'POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n';
const ONE_ONLY =
  '{"error":"generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses"}';

function response(value: number, datatype: 'UINT8' | 'FP16' = 'UINT8'): InferResponse {
  const data = Buffer.alloc(datatype === 'UINT8' ? 1 : 2, value);
  return {
    modelName: 'm',
    modelVersion: 1,
    id: '',
    parameters: undefined,
    outputs: [{ name: 'X', datatype, shape: [1], data: [data], byteLength: data.length }],
  };
}

function json(value: number): string {
  return `{"X":${value},"model_name":"m","model_version":"1"}`;
}

/** The answer to a request whose sink is used as `act` says. */
async function answerOf(
  t: TestContext,
  kind: 'generate' | 'generate_stream',
  act: (sink: ResponseSink) => void,
): Promise<Answer> {
  const loopback = await serve(t, (exchange) => ({
    isBodyKept: true,
    onBody: () => {
      const options = { exchange, idBytes: undefined, trace: undefined };
      act(kind === 'generate' ? new GenerateSink(options) : new GenerateStreamSink(options));
    },
  }));
  const client = new Client(loopback);
  client.send(REQUEST);
  const [answer] = await client.answered(1);
  assert.match(answer!.head, /\r\nTransfer-Encoding: chunked\r\n/);
  const type = kind === 'generate' ? 'application/json' : 'text/event-stream; charset=utf-8';
  assert.ok(answer!.head.includes(`\r\nContent-Type: ${type}\r\n`), answer!.head);
  return answer!;
}

describe('generate', () => {
  test('one response', async (t) => {
    const { status, body } = await answerOf(t, 'generate', (sink) => {
      assert.equal(sink.send(response(5), false), true);
      sink.finish();
    });
    assert.deepEqual([status, body], [200, json(5)]);
  });

  test('none or many: the status of the first, the text that says so', async (t) => {
    const none = await answerOf(t, 'generate', (sink) => sink.finish());
    assert.deepEqual([none.status, none.body], [200, ONE_ONLY]);
    const many = await answerOf(t, 'generate', (sink) => {
      for (let i = 0; i < 3; i++) sink.send(response(i), false);
      sink.finish();
    });
    assert.deepEqual([many.status, many.body], [200, ONE_ONLY]);
    const errorFirst = await answerOf(t, 'generate', (sink) => {
      sink.sendError(invalidArgument('bad'), false);
      sink.send(response(1), true);
      sink.finish();
    });
    assert.deepEqual([errorFirst.status, errorFirst.body], [400, ONE_ONLY]);
    const failedLater = await answerOf(t, 'generate', (sink) => {
      sink.send(response(1), false);
      sink.fail(internal('bad'));
    });
    assert.deepEqual([failedLater.status, failedLater.body], [200, ONE_ONLY]);
  });

  test('an error is the one response', async (t) => {
    const sent = await answerOf(t, 'generate', (sink) => {
      sink.sendError(invalidArgument('asked to fail'), true);
      sink.finish();
    });
    assert.deepEqual([sent.status, sent.body], [400, '{"error":"asked to fail"}']);
    const failed = await answerOf(t, 'generate', (sink) => sink.fail(unavailable('full')));
    assert.deepEqual([failed.status, failed.body], [503, '{"error":"full"}']);
  });

  test('an output that JSON cannot hold', async (t) => {
    const { status, body } = await answerOf(t, 'generate', (sink) => {
      sink.send(response(0, 'FP16'), true);
      sink.finish();
    });
    assert.equal(status, 400);
    assert.match(body, /^\{"error":"sending FP16 data via JSON is not supported/);
  });
});

describe('generate_stream', () => {
  test('an event for each response, nothing for none', async (t) => {
    const many = await answerOf(t, 'generate_stream', (sink) => {
      assert.equal(sink.send(response(1), false), true);
      sink.send(response(2), true);
      sink.finish();
    });
    assert.deepEqual([many.status, many.body], [200, `data: ${json(1)}\n\ndata: ${json(2)}\n\n`]);
    const none = await answerOf(t, 'generate_stream', (sink) => sink.finish());
    assert.deepEqual([none.status, none.body], [200, '']);
  });

  test('errors are events; only as the first they decide the status', async (t) => {
    const error = 'data: {"error":"bad"}\n\n';
    const first = await answerOf(t, 'generate_stream', (sink) => {
      sink.sendError(invalidArgument('bad'), false);
      sink.send(response(1), false);
      sink.finish();
    });
    assert.deepEqual([first.status, first.body], [400, `${error}data: ${json(1)}\n\n`]);
    const later = await answerOf(t, 'generate_stream', (sink) => {
      sink.send(response(1), false);
      sink.sendError(invalidArgument('bad'), false);
      sink.send(response(3), true);
      sink.finish();
    });
    assert.deepEqual([later.status, later.body], [200, `data: ${json(1)}\n\n${error}data: ${json(3)}\n\n`]);
    const failed = await answerOf(t, 'generate_stream', (sink) => sink.fail(internal('bad')));
    assert.deepEqual([failed.status, failed.body], [500, error]);
    const unwritable = await answerOf(t, 'generate_stream', (sink) => {
      sink.send(response(0, 'FP16'), false);
      sink.finish();
    });
    assert.equal(unwritable.status, 400);
  });

  test('a slow client holds the sender back and calls it again', async (t) => {
    const sinks: ResponseSink[] = [];
    const loopback = await serve(t, (exchange) => ({
      isBodyKept: true,
      onBody: () => sinks.push(new GenerateStreamSink({ exchange, idBytes: undefined, trace: undefined })),
    }));
    const client = new Client(loopback);
    client.socket.pause();
    client.send(REQUEST);
    await until(() => sinks.length === 1);
    const sink = sinks[0]!;
    const data = Buffer.alloc(50_000, 1);
    const large: InferResponse = {
      ...response(0),
      outputs: [
        { name: 'X', datatype: 'UINT8', shape: [data.length], data: [data], byteLength: data.length },
      ],
    };
    let roomCount = 0;
    sink.onRoom = () => {
      roomCount += 1;
    };
    let sentCount = 1;
    while (sink.send(large, false)) sentCount += 1;
    assert.equal(roomCount, 0);
    client.socket.resume();
    await until(() => roomCount === 1);
    assert.equal(sink.send(response(1), true), true);
    sink.finish();
    const [answer] = await client.answered(1);
    assert.equal(answer!.body.split('data: ').length - 1, sentCount + 1);
  });
});
