// How connections end: errors of the protocol, floods, pings, age, shutdown, and clients that go away.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERROR_CODE, FLAG, FRAME, PREFACE, SETTING } from './frames.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';
import type { HeaderPair } from './http2-types.ts';
import {
  createEcho,
  encodeData,
  encodeFrame,
  encodeRequest,
  encodeSettings,
  type Frame,
  HEAD_BLOCK,
  RawClient,
  REQUEST_BLOCK,
  serve,
  TRAILER_BLOCK,
  uint32,
} from './test-loopback.ts';

const PING = encodeFrame(FRAME.ping, 0, 0, Buffer.alloc(8));
const CANCEL = uint32(ERROR_CODE.cancel);
const END_HEADERS = FLAG.endHeaders;

async function until(isTrue: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > deadlineMs) throw new Error('waited too long');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('connection errors', () => {
  const big = Buffer.alloc(1024 * 1024 + 1);
  const cases: readonly (readonly [name: string, code: number, bytes: Buffer])[] = [
    ['a frame larger than the setting', ERROR_CODE.frameSize, encodeFrame(FRAME.data, 0, 1, big)],
    ['DATA on stream 0', ERROR_CODE.protocol, encodeData(0, 'x')],
    ['DATA on an idle stream', ERROR_CODE.protocol, encodeData(1, 'x')],
    ['HEADERS on stream 0', ERROR_CODE.protocol, encodeRequest(0)],
    ['HEADERS on an even stream', ERROR_CODE.protocol, encodeRequest(2)],
    ['RST_STREAM on an idle stream', ERROR_CODE.protocol, encodeFrame(FRAME.rstStream, 0, 1, CANCEL)],
    ['RST_STREAM of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.rstStream, 0, 1)],
    ['WINDOW_UPDATE on an idle stream', ERROR_CODE.protocol, encodeFrame(FRAME.windowUpdate, 0, 1, CANCEL)],
    ['WINDOW_UPDATE of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.windowUpdate, 0, 0)],
    ['an empty WINDOW_UPDATE', ERROR_CODE.protocol, encodeFrame(FRAME.windowUpdate, 0, 0, uint32(0))],
    ['PING on a stream', ERROR_CODE.protocol, encodeFrame(FRAME.ping, 0, 1, Buffer.alloc(8))],
    ['PING of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.ping, 0, 0, Buffer.alloc(7))],
    ['SETTINGS on a stream', ERROR_CODE.protocol, encodeFrame(FRAME.settings, 0, 1)],
    ['SETTINGS of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.settings, 0, 0, Buffer.alloc(7))],
    ['SETTINGS ack with a payload', ERROR_CODE.frameSize, encodeFrame(FRAME.settings, 1, 0, Buffer.alloc(6))],
    ['a bad ENABLE_PUSH', ERROR_CODE.protocol, encodeSettings([SETTING.enablePush, 2])],
    ['a window too large', ERROR_CODE.flowControl, encodeSettings([SETTING.initialWindowSize, 2 ** 31])],
    ['a small MAX_FRAME_SIZE', ERROR_CODE.protocol, encodeSettings([SETTING.maxFrameSize, 16_383])],
    ['a large MAX_FRAME_SIZE', ERROR_CODE.protocol, encodeSettings([SETTING.maxFrameSize, 2 ** 24])],
    ['PUSH_PROMISE', ERROR_CODE.protocol, encodeFrame(FRAME.pushPromise, END_HEADERS, 1, Buffer.alloc(4))],
    ['GOAWAY of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.goaway, 0, 0)],
    ['PRIORITY of a wrong size', ERROR_CODE.frameSize, encodeFrame(FRAME.priority, 0, 1)],
    ['PRIORITY on stream 0', ERROR_CODE.protocol, encodeFrame(FRAME.priority, 0, 0, Buffer.alloc(5))],
    ['CONTINUATION alone', ERROR_CODE.protocol, encodeFrame(FRAME.continuation, END_HEADERS, 1)],
    ['bad HPACK', ERROR_CODE.compression, encodeFrame(FRAME.headers, END_HEADERS, 1, Buffer.from([0x80]))],
    [
      'padding longer than HEADERS',
      ERROR_CODE.protocol,
      encodeFrame(FRAME.headers, END_HEADERS | FLAG.padded, 1, Buffer.from([9, 0x82])),
    ],
    [
      'no room for the priority',
      ERROR_CODE.protocol,
      encodeFrame(FRAME.headers, END_HEADERS | FLAG.priority, 1, Buffer.alloc(4)),
    ],
    [
      'padding longer than DATA',
      ERROR_CODE.protocol,
      Buffer.concat([encodeRequest(1), encodeFrame(FRAME.data, FLAG.padded, 1, Buffer.from([2, 0]))]),
    ],
    [
      'no room for the padding of DATA',
      ERROR_CODE.frameSize,
      Buffer.concat([encodeRequest(1), encodeFrame(FRAME.data, FLAG.padded, 1)]),
    ],
    [
      'a frame between HEADERS and CONTINUATION',
      ERROR_CODE.protocol,
      Buffer.concat([encodeFrame(FRAME.headers, 0, 1, REQUEST_BLOCK), PING]),
    ],
    [
      'CONTINUATION of another stream',
      ERROR_CODE.protocol,
      Buffer.concat([
        encodeFrame(FRAME.headers, 0, 1, REQUEST_BLOCK),
        encodeFrame(FRAME.continuation, END_HEADERS, 3),
      ]),
    ],
    [
      'a request with the id of an older one',
      ERROR_CODE.streamClosed,
      Buffer.concat([encodeRequest(5, { isEnd: true }), encodeRequest(3)]),
    ],
    [
      'a header block without end',
      ERROR_CODE.enhanceYourCalm,
      Buffer.concat([
        encodeFrame(FRAME.headers, 0, 1, REQUEST_BLOCK),
        ...Array.from({ length: 5 }, () => encodeFrame(FRAME.continuation, 0, 1, Buffer.alloc(16_000))),
      ]),
    ],
    [
      'endless empty CONTINUATION',
      ERROR_CODE.enhanceYourCalm,
      Buffer.concat([
        encodeFrame(FRAME.headers, 0, 1, REQUEST_BLOCK),
        ...Array.from({ length: 40 }, () => encodeFrame(FRAME.continuation, 0, 1)),
      ]),
    ],
    [
      'a huge HEADERS frame',
      ERROR_CODE.enhanceYourCalm,
      encodeFrame(FRAME.headers, END_HEADERS, 1, Buffer.alloc(500_000)),
    ],
  ];

  for (const [name, code, bytes] of cases) {
    test(name, async (t) => {
      const echo = createEcho();
      const client = await RawClient.open((await serve(t, echo)).port);
      client.send(bytes);
      assert.equal((await client.takeGoaway()).code, code);
      assert.deepEqual(echo.defects, []);
    });
  }

  test('the first frame must be SETTINGS', async (t) => {
    const { port } = await serve(t, createEcho());
    for (const frame of [PING, encodeFrame(FRAME.settings, FLAG.ack, 0)]) {
      const client = await RawClient.connect(port);
      client.send(PREFACE, frame);
      assert.equal((await client.takeGoaway()).code, ERROR_CODE.protocol);
    }
  });

  test('what is not HTTP/2 is closed without an answer', async (t) => {
    const { port } = await serve(t, createEcho());
    for (const text of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nXX']) {
      const client = await RawClient.connect(port);
      client.send(Buffer.from(text));
      await client.closed();
      assert.equal(client.frames.filter(({ type }) => type === FRAME.goaway).length, 0);
    }
  });
});

describe('stream errors', () => {
  const cases: readonly (readonly [name: string, code: number, bytes: Buffer])[] = [
    [
      'DATA after the end of the request',
      ERROR_CODE.streamClosed,
      Buffer.concat([encodeRequest(1, { isEnd: true }), encodeData(1, 'x')]),
    ],
    [
      'HEADERS after the end of the request',
      ERROR_CODE.streamClosed,
      Buffer.concat([encodeRequest(1, { isEnd: true }), encodeRequest(1, { isEnd: true })]),
    ],
    ['trailers without an end', ERROR_CODE.protocol, Buffer.concat([encodeRequest(1), encodeRequest(1)])],
  ];
  for (const [name, code, bytes] of cases) {
    test(name, async (t) => {
      const echo = createEcho({ isAnswering: false });
      const client = await RawClient.open((await serve(t, echo)).port);
      client.send(bytes);
      assert.equal((await client.takeType(FRAME.rstStream, 1)).payload.readUInt32BE(0), code);
      await client.roundTrip();
      assert.equal(echo.events[0]!.abortCount, 1);
    });
  }

  const base: readonly HeaderPair[] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', '/a'],
  ];
  const malformed: readonly (readonly [string, readonly HeaderPair[]])[] = [
    ['no path', base.slice(0, 2)],
    ['an empty path', [...base.slice(0, 2), [':path', '']]],
    ['a pseudo header twice', [...base, [':path', '/b']]],
    ['an unknown pseudo header', [...base, [':status', '200']]],
    ['a pseudo header after others', [['a', 'b'], ...base]],
    ['a header of the connection', [...base, ['connection', 'close']]],
    ['te that is not trailers', [...base, ['te', 'gzip']]],
    ['an upper case name', [...base, ['Accept', 'a']]],
    ['a line feed in a value', [...base, ['a', 'b\nc']]],
  ];
  for (const [name, pairs] of malformed) {
    test(`a request with ${name}`, async (t) => {
      const echo = createEcho();
      const client = await RawClient.open((await serve(t, echo)).port);
      client.send(
        encodeRequest(1, { block: encodeHeaderBlock(pairs), isEnd: true }),
        encodeRequest(3, { isEnd: true }),
      );
      assert.equal((await client.takeType(FRAME.rstStream, 1)).payload.readUInt32BE(0), ERROR_CODE.protocol);
      await client.takeAnswer(3);
      assert.equal(echo.events.length, 1);
    });
  }

  test('a list of headers that is too large, and the HPACK table stays right', async (t) => {
    const echo = createEcho();
    const client = await RawClient.open((await serve(t, echo, { headerListBytesMax: 1000 })).port);
    const insert = Buffer.from('40016101', 'hex');
    const large = Buffer.concat([
      REQUEST_BLOCK,
      encodeHeaderBlock([['x', 'y'.repeat(900)]]),
      insert,
      Buffer.from('1'),
    ]);
    const small = Buffer.concat([REQUEST_BLOCK, Buffer.from([0xbe])]);
    client.send(encodeRequest(1, { block: large }), encodeRequest(3, { block: small, isEnd: true }));
    const { payload } = await client.takeType(FRAME.rstStream, 1);
    assert.equal(payload.readUInt32BE(0), ERROR_CODE.enhanceYourCalm);
    await client.takeAnswer(3);
    assert.deepEqual(echo.events[0]!.headers[5], ['a', '1']);
  });

  test('more streams than allowed are refused', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open((await serve(t, echo, { maxConcurrentStreams: 2 })).port);
    client.send(encodeRequest(1), encodeRequest(3), encodeRequest(5));
    assert.equal(
      (await client.takeType(FRAME.rstStream, 5)).payload.readUInt32BE(0),
      ERROR_CODE.refusedStream,
    );
    echo.events[0]!.stream.sendTrailers(TRAILER_BLOCK);
    client.send(encodeRequest(7));
    await until(() => echo.events.length === 3);
  });
});

describe('floods', () => {
  const many = (count: number, frame: (at: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, at) => frame(at)));
  const cases: readonly (readonly [string, Buffer])[] = [
    ['SETTINGS', many(2000, () => encodeSettings())],
    ['PRIORITY', many(2000, () => encodeFrame(FRAME.priority, 0, 1, Buffer.alloc(5)))],
    ['unknown frames', many(2000, () => encodeFrame(99, 0, 0))],
    ['empty DATA', Buffer.concat([encodeRequest(1), many(2000, () => encodeData(1, ''))])],
    [
      'DATA of padding',
      Buffer.concat([
        encodeRequest(1),
        many(2000, () => encodeFrame(0, FLAG.padded, 1, Buffer.from([1, 0]))),
      ]),
    ],
    [
      'streams that are reset at once',
      many(3000, (at) =>
        Buffer.concat([encodeRequest(at * 2 + 1), encodeFrame(FRAME.rstStream, 0, at * 2 + 1, CANCEL)]),
      ),
    ],
    [
      'streams that make us reset them',
      many(3000, (at) =>
        Buffer.concat([encodeRequest(at * 2 + 1), encodeFrame(FRAME.windowUpdate, 0, at * 2 + 1, uint32(0))]),
      ),
    ],
  ];
  for (const [name, bytes] of cases) {
    test(`of ${name} end the connection`, async (t) => {
      const echo = createEcho({ isAnswering: false });
      const client = await RawClient.open((await serve(t, echo)).port);
      client.send(bytes);
      assert.equal((await client.takeGoaway()).code, ERROR_CODE.enhanceYourCalm);
      assert.ok(echo.events.every(({ abortCount }) => abortCount === 1));
    });
  }

  test('of pings end the connection even with a call open', async (t) => {
    const client = await RawClient.open((await serve(t, createEcho({ isAnswering: false }))).port);
    client.send(
      encodeRequest(1),
      many(2000, () => PING),
    );
    assert.deepEqual(await client.takeGoaway(), { code: ERROR_CODE.enhanceYourCalm, text: 'too_many_pings' });
  });

  test('a client that cancels some of its many calls is served', async (t) => {
    const echo = createEcho();
    const client = await RawClient.open((await serve(t, echo)).port);
    for (let at = 0; at < 1000; at++) {
      const id = at * 2 + 1;
      if (at % 3 === 0) client.send(encodeRequest(id), encodeFrame(FRAME.rstStream, 0, id, CANCEL));
      else client.send(encodeRequest(id, { isEnd: true }));
    }
    await client.takeAnswer(1997);
    assert.equal(echo.events.filter(({ abortCount }) => abortCount === 1).length, 334);
  });

  test('a client that reads no answers is not read either', async (t) => {
    const block = encodeHeaderBlock([['a', 'b'.repeat(60_000)]]);
    let requestCount = 0;
    const { port } = await serve(t, {
      onRequest(stream) {
        requestCount++;
        stream.sendHeaderBlock(block, true);
        return createEcho().onRequest(stream, [], false);
      },
    });
    const client = await RawClient.open(port);
    client.socket.pause();
    for (let at = 0; at < 5000; at++)
      client.send(encodeRequest(at * 2 + 1, { isEnd: true }), Buffer.alloc(0));
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.ok(requestCount < 4000, `${requestCount} requests were read`);
    const before = requestCount;
    client.socket.resume();
    await until(() => requestCount > before);
  });
});

describe('pings', () => {
  test('are answered with their payload', async (t) => {
    const client = await RawClient.open((await serve(t, createEcho())).port);
    client.send(encodeFrame(FRAME.ping, 0, 0, Buffer.from('12345678')));
    const { flags, payload } = await client.takeType(FRAME.ping);
    assert.deepEqual([flags, payload.toString()], [FLAG.ack, '12345678']);
  });

  test('too many without calls end the connection; an answer starts the count anew', async (t) => {
    const { port } = await serve(t, createEcho(), { pingStrikesMax: 2 });
    const client = await RawClient.open(port);
    client.send(PING, PING, PING);
    client.send(encodeRequest(1, { isEnd: true }));
    await client.takeAnswer(1);
    client.send(PING, PING, PING);
    await client.take(() => client.frames.filter(({ type }) => type === FRAME.ping).length === 6);
    client.send(PING);
    assert.deepEqual(await client.takeGoaway(), { code: ERROR_CODE.enhanceYourCalm, text: 'too_many_pings' });
  });

  test('are not counted with a call open, with no limit, or when they are seldom', async (t) => {
    const loopbacks = [
      await serve(t, createEcho({ isAnswering: false })),
      await serve(t, createEcho(), { pingStrikesMax: 0 }),
      await serve(t, createEcho(), { pingIntervalWithoutDataMsMin: 0 }),
    ];
    for (const [at, { port }] of loopbacks.entries()) {
      const client = await RawClient.open(port);
      if (at === 0) client.send(encodeRequest(1));
      for (let i = 0; i < 20; i++) await client.roundTrip();
    }
  });

  test('of the server find a dead client', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const { port, connections } = await serve(t, echo, {
      keepaliveTimeMs: 60_000,
      keepaliveTimeoutMs: 20_000,
    });
    const client = await RawClient.open(port);
    const connection = [...connections][0]!;
    const startMs = performance.now();
    connection.checkTime(startMs + 70_000);
    await client.roundTrip();
    assert.deepEqual(client.frames, [], 'without calls there is no ping');
    client.send(encodeRequest(1));
    await until(() => echo.events.length === 1);
    connection.checkTime(startMs + 50_000);
    connection.checkTime(startMs + 70_000);
    await client.acknowledge();
    await client.roundTrip();
    connection.checkTime(startMs + 100_000);
    await client.takeType(FRAME.ping);
    connection.checkTime(startMs + 115_000);
    assert.equal(connection.streamCount, 1);
    connection.checkTime(startMs + 121_000);
    await client.closed();
    assert.equal(echo.events[0]!.abortCount, 1);
  });
});

describe('the end of a connection', () => {
  test('endSoon takes what was under way, lets open streams finish, and takes no new ones', async (t) => {
    const echo = createEcho();
    const { port, connections } = await serve(t, echo);
    const client = await RawClient.open(port);
    client.send(encodeRequest(1));
    await until(() => echo.events.length === 1);
    [...connections][0]!.endSoon();
    assert.deepEqual(goawayOf(await client.takeType(FRAME.goaway)), [2 ** 31 - 1, ERROR_CODE.none]);
    client.send(encodeRequest(3), encodeData(3, 'under way', true));
    assert.equal((await client.takeAnswer(3)).toString(), 'under way');
    await client.acknowledge();
    assert.deepEqual(goawayOf(await client.takeType(FRAME.goaway)), [3, ERROR_CODE.none]);
    client.send(encodeRequest(5), encodeData(5, 'dropped', true), encodeData(1, 'kept', true));
    assert.equal((await client.takeAnswer(1)).toString(), 'kept');
    await client.closed();
    assert.equal(echo.events.length, 2);
  });

  test('endSoon does not wait long for a client that does not say that it has heard', async (t) => {
    const { port, connections } = await serve(t, createEcho());
    const client = await RawClient.open(port);
    const startMs = performance.now();
    [...connections][0]!.endSoon();
    await client.closed();
    assert.ok(performance.now() - startMs > 900);
    assert.equal(client.frames.filter(({ type }) => type === FRAME.goaway).length, 2);
  });

  test('endSoon closes an idle connection, and sends everything of a slow one first', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const { port, connections } = await serve(t, echo);
    const idle = await RawClient.open(port);
    [...connections][0]!.endSoon();
    await idle.acknowledge();
    assert.equal((await idle.takeGoaway()).code, ERROR_CODE.none);
    const slow = await RawClient.open(port, encodeSettings([SETTING.initialWindowSize, 2 ** 30]));
    slow.send(encodeRequest(1, { isEnd: true }), encodeFrame(FRAME.windowUpdate, 0, 0, uint32(2 ** 30)));
    await until(() => echo.events.length === 1);
    slow.socket.pause();
    echo.events[0]!.stream.sendAll(HEAD_BLOCK, [Buffer.alloc(20_000_000)], TRAILER_BLOCK);
    [...connections].at(-1)!.endSoon();
    await new Promise((resolve) => setTimeout(resolve, 50));
    slow.socket.resume();
    await slow.acknowledge();
    assert.equal((await slow.takeAnswer(1)).length, 20_000_000);
    await slow.closed();
    assert.equal(echo.events[0]!.abortCount, 0);
  });

  test('age: GOAWAY, then the grace, then the end', async (t) => {
    const echo = createEcho();
    const options = { connectionAgeMsMax: 60_000, connectionAgeGraceMs: 5_000 };
    const { port, connections } = await serve(t, echo, options);
    const client = await RawClient.open(port);
    client.send(encodeRequest(1));
    await until(() => echo.events.length === 1);
    const connection = [...connections][0]!;
    const startMs = performance.now();
    connection.checkTime(startMs + 59_000);
    connection.checkTime(startMs + 60_000);
    assert.equal((await client.takeType(FRAME.goaway)).payload.readUInt32BE(4), ERROR_CODE.none);
    connection.checkTime(startMs + 64_000);
    assert.equal(connection.streamCount, 1);
    connection.checkTime(startMs + 65_001);
    await client.closed();
    assert.equal(echo.events[0]!.abortCount, 1);
  });

  test('a client that sends no preface or does not close is not kept', async (t) => {
    const { port, connections } = await serve(t, createEcho());
    const silent = await RawClient.connect(port);
    await until(() => connections.size === 1);
    const first = [...connections][0]!;
    first.checkTime(performance.now() + 9_000);
    assert.equal(silent.isClosed, false);
    first.checkTime(performance.now() + 11_000);
    await silent.closed();
    await until(() => connections.size === 0);

    const open = await RawClient.open(port);
    open.socket.allowHalfOpen = true;
    const second = [...connections][0]!;
    second.endSoon();
    await open.acknowledge();
    await open.take((frame) => frame.type === FRAME.goaway && goawayOf(frame)[0] === 0);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(connections.size, 1);
    second.checkTime(performance.now() + 11_000);
    await until(() => connections.size === 0);
    open.socket.destroy();
  });

  test('a client that closes or breaks off aborts its streams once', async (t) => {
    for (const how of ['end', 'resetAndDestroy', 'destroy'] as const) {
      const echo = createEcho({ isAnswering: false });
      const { port, connections } = await serve(t, echo);
      const client = await RawClient.open(port);
      client.send(encodeRequest(1), encodeRequest(3, { isEnd: true }));
      await until(() => echo.events.length === 2);
      client.socket[how]();
      await until(() => connections.size === 0);
      assert.deepEqual(
        echo.events.map(({ abortCount, stream }) => [abortCount, stream.isOpen]),
        [
          [1, false],
          [1, false],
        ],
      );
    }
  });

  test('destroy inside a callback is told to the consumer that comes after it', async (t) => {
    let abortCount = 0;
    const loopback = await serve(t, {
      onRequest() {
        for (const connection of loopback.connections) connection.destroy();
        return { onData: () => {}, onEnd: () => {}, onAbort: () => void abortCount++, onDrain: () => {} };
      },
    });
    const client = await RawClient.open(loopback.port);
    client.send(encodeRequest(1), encodeRequest(3));
    await client.closed();
    assert.equal(abortCount, 1);
  });
});

function goawayOf({ payload }: Frame): [lastStreamId: number, code: number] {
  return [payload.readUInt32BE(0), payload.readUInt32BE(4)];
}
