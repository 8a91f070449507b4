// Frames sent by hand: what RFC 9113 asks of a server, the bounds, and the rules of gRPC for pings and life time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERROR_CODE, FLAG, FRAME, PREFACE, SETTING } from './frames.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';
import {
  createEcho,
  encodeData,
  encodeFrame,
  encodeRequest,
  encodeSettings,
  HEAD_BLOCK,
  RawClient,
  REQUEST_BLOCK,
  serve,
  TRAILER_BLOCK,
  uint32,
} from './test-loopback.ts';

function windowUpdate(streamId: number, byteLength: number): Buffer {
  return encodeFrame(FRAME.windowUpdate, 0, streamId, uint32(byteLength));
}

function reset(streamId: number): Buffer {
  return encodeFrame(FRAME.rstStream, 0, streamId, uint32(ERROR_CODE.cancel));
}

async function resetCode(client: RawClient, streamId: number): Promise<number> {
  return (await client.takeType(FRAME.rstStream, streamId)).payload.readUInt32BE(0);
}

async function until(isTrue: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > deadlineMs) throw new Error('waited too long');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('a request', () => {
  test('is answered with headers, data and trailers', async (t) => {
    const echo = createEcho();
    const client = await RawClient.open((await serve(t, echo)).port);
    client.send(encodeRequest(1), encodeData(1, 'hello', true));
    const head = await client.takeType(FRAME.headers, 1);
    assert.deepEqual([head.flags, head.payload], [FLAG.endHeaders, HEAD_BLOCK]);
    assert.equal((await client.takeType(FRAME.data, 1)).payload.toString(), 'hello');
    const trailers = await client.takeType(FRAME.headers, 1);
    assert.deepEqual([trailers.flags, trailers.payload], [FLAG.endHeaders | FLAG.endStream, TRAILER_BLOCK]);
    assert.deepEqual(echo.events[0]!.headers[2], [':path', '/a.B/C']);
    assert.equal(echo.events[0]!.stream.isOpen, false);
    await client.roundTrip();
    assert.deepEqual(client.frames, []);
  });

  test('is read when every byte comes alone', async (t) => {
    const echo = createEcho();
    const client = await RawClient.connect((await serve(t, echo)).port);
    const padded = encodeFrame(FRAME.data, FLAG.padded, 1, Buffer.from('\x03abc\0\0\0', 'latin1'));
    const bytes = Buffer.concat([
      PREFACE,
      encodeSettings(),
      encodeRequest(1),
      padded,
      encodeFrame(FRAME.ping, 0, 0, Buffer.alloc(8)),
      encodeFrame(0x42, 0, 0, Buffer.alloc(20)),
      encodeData(1, 'def', true),
    ]);
    for (const byte of bytes) {
      client.send(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await client.takeAnswer(1)).toString(), 'abcdef');
    assert.deepEqual(echo.events[0]!.received.map(String), ['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('may have padding, priority, CONTINUATION and trailers', async (t) => {
    const echo = createEcho();
    const client = await RawClient.open((await serve(t, echo)).port);
    const prefix = Buffer.from([2, 0, 0, 0, 0, 16]);
    const flags = FLAG.padded | FLAG.priority;
    client.send(
      encodeFrame(FRAME.priority, 0, 7, Buffer.alloc(5)),
      encodeFrame(
        FRAME.headers,
        flags,
        1,
        Buffer.concat([prefix, REQUEST_BLOCK.subarray(0, 5), Buffer.alloc(2)]),
      ),
      encodeFrame(FRAME.continuation, 0, 1, REQUEST_BLOCK.subarray(5, 6)),
      encodeFrame(FRAME.continuation, 0, 1),
      encodeFrame(FRAME.continuation, FLAG.endHeaders, 1, REQUEST_BLOCK.subarray(6)),
      encodeFrame(FRAME.data, FLAG.padded, 1, Buffer.from([0, 65])),
      encodeFrame(FRAME.data, FLAG.padded, 1, Buffer.from([1, 0])),
      encodeFrame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, encodeHeaderBlock([['x', 'y']])),
    );
    assert.equal((await client.takeAnswer(1)).toString(), 'A');
    assert.equal(echo.events[0]!.headers.length, 5);
  });

  test('that repeats a block gets the same headers, until the table changes', async (t) => {
    const echo = createEcho();
    const client = await RawClient.open((await serve(t, echo)).port);
    const name = Buffer.from('40016101', 'hex');
    const first = Buffer.concat([REQUEST_BLOCK, name, Buffer.from('1')]);
    const second = Buffer.concat([REQUEST_BLOCK, Buffer.from([0xbe])]);
    const third = Buffer.concat([REQUEST_BLOCK, name, Buffer.from('2')]);
    for (const [at, block] of [first, second, second, third, second].entries()) {
      client.send(encodeRequest(1 + 2 * at, { isEnd: true, block }));
    }
    await client.takeAnswer(9);
    const values = echo.events.map(({ headers }) => headers[5]![1]);
    assert.deepEqual(values, ['1', '1', '1', '2', '2']);
    assert.equal(echo.events[1]!.headers, echo.events[2]!.headers);
  });

  test('that is answered before its end is ended with RST_STREAM(NO_ERROR), and late frames are dropped', async (t) => {
    const client = await RawClient.open(
      (
        await serve(t, {
          onRequest(stream) {
            stream.sendHeaderBlock(TRAILER_BLOCK, true);
            return createEcho().onRequest(stream, [], false);
          },
        })
      ).port,
    );
    client.send(encodeRequest(1));
    assert.equal(await resetCode(client, 1), ERROR_CODE.none);
    client.send(encodeData(1, 'late'), windowUpdate(1, 5), reset(1), encodeData(1, '', true));
    client.send(encodeFrame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, TRAILER_BLOCK));
    await client.roundTrip();
    assert.equal(client.frames.filter(({ type }) => type !== FRAME.headers).length, 0);
  });

  test('whose handler or consumer throws is reset, and the connection goes on', async (t) => {
    const defects: unknown[] = [];
    const fail = (what: string) => () => {
      throw new Error(what);
    };
    const { port } = await serve(t, {
      onRequest(stream) {
        if (stream.id === 1) throw new Error('onRequest');
        if (stream.id === 9) stream.sendData([Buffer.alloc(100_000)]);
        if (stream.id === 11) stream.sendAll(HEAD_BLOCK, [], TRAILER_BLOCK);
        return {
          onData: fail('onData'),
          onEnd: fail('onEnd'),
          onAbort: fail('onAbort'),
          onDrain: fail('onDrain'),
        };
      },
      onDefect: (thrown) => defects.push((thrown as Error).message),
    });
    const client = await RawClient.open(port);
    client.send(
      encodeRequest(1),
      encodeRequest(3),
      encodeData(3, 'x'),
      encodeRequest(5),
      encodeData(5, '', true),
    );
    client.send(
      encodeRequest(7),
      reset(7),
      encodeRequest(9),
      windowUpdate(9, 200_000),
      windowUpdate(0, 200_000),
    );
    for (const id of [1, 3, 5, 9]) assert.equal(await resetCode(client, id), ERROR_CODE.internal);
    client.send(encodeRequest(11));
    await client.takeAnswer(11);
    assert.deepEqual(defects, ['onRequest', 'onData', 'onEnd', 'onAbort', 'onDrain']);
  });
});

describe('flow control', () => {
  test('a closed window holds data back, onDrain comes once when it has left', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open(
      (await serve(t, echo)).port,
      encodeSettings([SETTING.initialWindowSize, 0]),
    );
    client.send(encodeRequest(1, { isEnd: true }));
    await until(() => echo.events.length === 1);
    const event = echo.events[0]!;
    event.stream.sendHeaderBlock(HEAD_BLOCK, false);
    event.stream.sendData([Buffer.from('abc'), Buffer.alloc(0), Buffer.from('def')]);
    assert.equal(event.stream.queuedBytes, 6);
    client.send(windowUpdate(1, 1));
    assert.equal((await client.takeType(FRAME.data, 1)).payload.toString(), 'a');
    client.send(windowUpdate(1, 3));
    assert.equal((await client.takeType(FRAME.data, 1)).payload.toString(), 'bcd');
    assert.deepEqual([event.drainCount, event.stream.queuedBytes], [0, 2]);
    event.stream.sendTrailers(TRAILER_BLOCK);
    assert.equal(event.stream.isOpen, false);
    client.send(windowUpdate(1, 100));
    assert.equal((await client.takeAnswer(1)).toString(), 'ef');
    assert.deepEqual([event.drainCount, event.abortCount], [1, 0]);
  });

  test('SETTINGS change the windows of open streams, below zero too', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open(
      (await serve(t, echo)).port,
      encodeSettings([SETTING.initialWindowSize, 10]),
    );
    client.send(encodeRequest(1, { isEnd: true }));
    await until(() => echo.events.length === 1);
    const { stream } = echo.events[0]!;
    stream.sendData([Buffer.alloc(20)]);
    assert.equal((await client.takeType(FRAME.data, 1)).payload.length, 10);
    client.send(encodeSettings([SETTING.initialWindowSize, 4]), windowUpdate(1, 6));
    await client.roundTrip();
    assert.equal(client.frames.filter(({ type }) => type === FRAME.data).length, 0);
    client.send(windowUpdate(1, 1));
    assert.equal((await client.takeType(FRAME.data, 1)).payload.length, 1);
    client.send(encodeSettings([SETTING.initialWindowSize, 7]));
    assert.equal((await client.takeType(FRAME.data, 1)).payload.length, 3);
    client.send(encodeSettings([SETTING.initialWindowSize, 100]));
    assert.equal((await client.takeType(FRAME.data, 1)).payload.length, 6);
  });

  test('the window of the connection is shared fairly', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open(
      (await serve(t, echo)).port,
      encodeSettings([SETTING.initialWindowSize, 2 ** 30]),
    );
    for (const id of [1, 3, 5]) client.send(encodeRequest(id, { isEnd: true }));
    await until(() => echo.events.length === 3);
    for (const { stream } of echo.events) stream.sendData([Buffer.alloc(2_000_000)]);
    await until(() => sum(client) === 65_535);
    client.send(windowUpdate(0, 3_300_000));
    await until(() => sum(client) === 3_365_535);
    for (const id of [1, 3, 5]) assert.ok(sum(client, id) >= 2 ** 20, `stream ${id}: ${sum(client, id)}`);
    assert.ok(client.frames.every(({ payload }) => payload.length <= 16_384));
    client.send(windowUpdate(0, 3_000_000));
    await until(() => sum(client) === 6_000_000);
    assert.deepEqual(
      echo.events.map(({ drainCount }) => drainCount),
      [1, 1, 1],
    );
  });

  test('a large answer leaves whole, and a small one does not wait for all of them', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open(
      (await serve(t, echo)).port,
      encodeSettings([SETTING.initialWindowSize, 2 ** 30]),
    );
    const ids = [1, 3, 5, 7, 9];
    for (const id of ids) client.send(encodeRequest(id, { isEnd: true }));
    await until(() => echo.events.length === ids.length);
    // The window of the connection is closed by the first bytes: all of these wait for it.
    for (const { stream } of echo.events.slice(0, 4)) stream.sendData([Buffer.alloc(600_000)]);
    echo.events[4]!.stream.sendData([Buffer.alloc(40_000)]);
    await until(() => sum(client) === 65_535);
    client.send(windowUpdate(0, 2 ** 30));
    await until(() => sum(client) === 4 * 600_000 + 40_000);
    const order = client.frames.filter(({ type }) => type === FRAME.data).map(({ streamId }) => streamId);
    const turns = order.filter((id, i) => id !== order[i - 1]);
    assert.deepEqual(turns, [1, 9, 1, 3, 5, 7]);
  });

  test('credit is given back for what was consumed, and not before', async (t) => {
    const echo = createEcho({ isConsuming: false });
    const { port } = await serve(t, echo, { streamWindowBytes: 65_535, connectionWindowBytes: 65_535 });
    const client = await RawClient.open(port);
    client.send(encodeRequest(1), encodeData(1, Buffer.alloc(40_000)));
    await client.roundTrip();
    assert.deepEqual(client.frames, []);
    echo.events[0]!.stream.consumed(30_000);
    await client.roundTrip();
    assert.deepEqual(client.frames, []);
    echo.events[0]!.stream.consumed(10_000);
    assert.equal((await client.takeType(FRAME.windowUpdate, 1)).payload.readUInt32BE(0), 40_000);
    assert.equal((await client.takeType(FRAME.windowUpdate, 0)).payload.readUInt32BE(0), 40_000);
    // more than was received is not believed
    echo.events[0]!.stream.consumed(1_000_000);
    await client.roundTrip();
    assert.deepEqual(client.frames, []);
  });

  test('a stream that closes gives its share of the connection back', async (t) => {
    const echo = createEcho({ isConsuming: false });
    const { port } = await serve(t, echo, { connectionWindowBytes: 65_535 });
    const client = await RawClient.open(port);
    client.send(encodeRequest(1), encodeData(1, Buffer.alloc(40_000)), reset(1));
    assert.equal((await client.takeType(FRAME.windowUpdate, 0)).payload.readUInt32BE(0), 40_000);
    // data for the closed stream counts as well
    client.send(encodeData(1, Buffer.alloc(50_000)));
    assert.equal((await client.takeType(FRAME.windowUpdate, 0)).payload.readUInt32BE(0), 50_000);
    assert.equal(echo.events[0]!.abortCount, 1);
  });

  test('a client that exceeds a window is refused', async (t) => {
    const echo = createEcho({ isConsuming: false });
    const limits = { streamWindowBytes: 65_535, connectionWindowBytes: 100_000 };
    const client = await RawClient.open((await serve(t, echo, limits)).port);
    client.send(encodeRequest(1), encodeData(1, Buffer.alloc(65_535)), encodeData(1, 'x'));
    assert.equal(await resetCode(client, 1), ERROR_CODE.flowControl);
    assert.equal(echo.events[0]!.abortCount, 1);
    client.send(encodeRequest(3), encodeData(3, Buffer.alloc(60_000)));
    client.send(encodeRequest(5), encodeData(5, Buffer.alloc(60_000)));
    assert.equal((await client.takeGoaway()).code, ERROR_CODE.flowControl);
    assert.deepEqual(
      echo.events.map(({ abortCount }) => abortCount),
      [1, 1, 1],
    );
  });

  test('a window too large, or an empty update, ends the stream or the connection', async (t) => {
    const { port } = await serve(t, createEcho());
    const client = await RawClient.open(port);
    client.send(encodeRequest(1), windowUpdate(1, 2 ** 31 - 1), encodeRequest(3), windowUpdate(3, 0));
    assert.equal(await resetCode(client, 1), ERROR_CODE.flowControl);
    assert.equal(await resetCode(client, 3), ERROR_CODE.protocol);
    client.send(windowUpdate(0, 2 ** 31 - 1));
    assert.equal((await client.takeGoaway()).code, ERROR_CODE.flowControl);
    const other = await RawClient.open(port);
    other.send(
      encodeRequest(1),
      windowUpdate(1, 1000),
      encodeSettings([SETTING.initialWindowSize, 2 ** 31 - 1]),
    );
    assert.equal((await other.takeGoaway()).code, ERROR_CODE.flowControl);
  });

  function sum(client: RawClient, streamId?: number): number {
    return client.frames
      .filter((frame) => frame.type === FRAME.data && (streamId ?? frame.streamId) === frame.streamId)
      .reduce((total, { payload }) => total + payload.length, 0);
  }
});

describe('sending', () => {
  test('a client that does not read stops the stream, not the memory', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open(
      (await serve(t, echo)).port,
      encodeSettings([SETTING.initialWindowSize, 2 ** 31 - 1]),
    );
    client.send(windowUpdate(0, 2 ** 30), encodeRequest(1, { isEnd: true }));
    await until(() => echo.events.length === 1);
    client.socket.pause();
    const event = echo.events[0]!;
    const total = 64 * 1024 * 1024;
    event.stream.sendData([Buffer.alloc(total, 7)]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(event.stream.queuedBytes > total / 2, `queued ${event.stream.queuedBytes}`);
    assert.equal(event.drainCount, 0);
    event.stream.sendTrailers(TRAILER_BLOCK);
    client.socket.resume();
    assert.equal((await client.takeAnswer(1)).length, total);
    assert.equal(event.drainCount, 1);
  });

  test('a header block longer than a frame is continued', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open((await serve(t, echo)).port);
    client.send(encodeRequest(1, { isEnd: true }));
    await until(() => echo.events.length === 1);
    const text = 'm'.repeat(40_000);
    echo.events[0]!.stream.sendHeaderBlock(encodeHeaderBlock([['grpc-message', text]]), true);
    const first = await client.takeType(FRAME.headers, 1);
    assert.deepEqual([first.flags, first.payload.length], [FLAG.endStream, 16_384]);
    const second = await client.takeType(FRAME.continuation, 1);
    const third = await client.takeType(FRAME.continuation, 1);
    assert.deepEqual([second.flags, third.flags], [0, FLAG.endHeaders]);
    const block = Buffer.concat([first.payload, second.payload, third.payload]);
    assert.deepEqual(new HpackDecoder(1e6).decode(block, 0, block.length).pairs, [['grpc-message', text]]);
  });

  test('reset drops what is queued, and calls on a closed stream do nothing', async (t) => {
    const echo = createEcho({ isAnswering: false });
    const client = await RawClient.open((await serve(t, echo)).port);
    client.send(encodeRequest(1));
    await until(() => echo.events.length === 1);
    const { stream } = echo.events[0]!;
    stream.sendData([Buffer.alloc(100_000)]);
    stream.reset(ERROR_CODE.cancel);
    assert.deepEqual([stream.isOpen, stream.queuedBytes], [false, 0]);
    stream.sendAll(HEAD_BLOCK, [Buffer.alloc(5)], TRAILER_BLOCK);
    stream.consumed(5);
    stream.reset(ERROR_CODE.internal);
    assert.equal(await resetCode(client, 1), ERROR_CODE.cancel);
    client.send(reset(1), windowUpdate(0, 1_000_000));
    await client.roundTrip();
    assert.ok(client.frames.every(({ type }) => type === FRAME.data));
    assert.equal(echo.events[0]!.abortCount, 0);
  });
});
