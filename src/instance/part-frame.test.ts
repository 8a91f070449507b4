// Random results through the PART frame, in pieces that end anywhere; and response parameters, which only hosts of
// other languages write.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BY_SENDER, type ExecuteResult } from '../backend/sdk.ts';
import { DATA_TYPES } from '../domain/datatype.ts';
import { STATUS_CODES, StatusError } from '../domain/status.ts';
import { createPrng, type Prng } from '../lib/prng.ts';
import { FrameReader } from './frame-reader.ts';
import { decodePartFrame, encodePartFrame, type ReceivedPart, type SentPart } from './part-frame.ts';
import { FRAME_PART } from './protocol.ts';
import { ReceivedError, readResult } from './result-codec.ts';

function randomResult(prng: Prng): ExecuteResult {
  if (prng.boolean(0.2)) return BY_SENDER;
  if (prng.boolean(0.3)) {
    return new StatusError(prng.pick(STATUS_CODES), prng.pick(['', 'größe 漢😀', 'x'.repeat(70_000)]));
  }
  const bytesMax = prng.pick([0, 10, 5000, 80_000]);
  return Array.from({ length: prng.integer(0, 4) }, () => ({
    index: prng.integer(0, 65_535),
    shape: Array.from({ length: prng.integer(0, 6) }, () => prng.pick([0, 1, 7, 2 ** 40])),
    data: Buffer.alloc(prng.integer(0, bytesMax), prng.integer(1, 255)),
  }));
}

function receive(prng: Prng, bytes: Buffer): ReceivedPart[] {
  const parts: ReceivedPart[] = [];
  const reader = new FrameReader({
    isContiguous: false,
    onFrame: (frame) => {
      assert.equal(frame.type, FRAME_PART);
      parts.push(decodePartFrame(frame.header, frame.payload));
    },
  });
  for (let at = 0; at < bytes.length; ) {
    const length = prng.integer(1, prng.pick([5, 100, 50_000]));
    reader.push(bytes.subarray(at, at + length));
    at += length;
  }
  return parts;
}

/** In the form in which it was sent. */
function plain({ result, ...rest }: ReceivedPart): object {
  if (typeof result === 'symbol') return { ...rest, result };
  if (result instanceof StatusError) return { ...rest, error: result.describe() };
  assert.equal(result.parameters, undefined);
  const outputs = result.outputs.map(({ index, shape, datatype, data, byteLength }) => {
    assert.equal(datatype, undefined);
    const bytes = Buffer.concat(data);
    assert.equal(byteLength, bytes.length);
    return { index, shape, data: bytes };
  });
  return { ...rest, outputs };
}

test('random parts, one after another, come out as they went in', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const prng = createPrng(seed);
    const sent = Array.from(
      { length: prng.integer(1, 6) },
      (): SentPart => ({
        batchId: prng.uint32(),
        request: prng.uint32(),
        isFinal: prng.boolean(0.5),
        result: randomResult(prng),
      }),
    );
    const received = receive(prng, Buffer.concat(sent.flatMap(encodePartFrame)));
    const expected = sent.map(({ result, ...rest }) => {
      if (typeof result === 'symbol') return { ...rest, result };
      if (result instanceof StatusError) return { ...rest, error: result.describe() };
      return { ...rest, outputs: result };
    });
    assert.deepEqual(received.map(plain), expected, `seed ${seed}`);
  }
});

test('a small part is one buffer of its own, so that the sender may reuse its bytes', () => {
  const data = Buffer.from('first');
  const frame = encodePartFrame({
    batchId: 1,
    request: 0,
    isFinal: false,
    result: [{ index: 0, shape: [5], data }],
  });
  assert.equal(frame.length, 1);
  data.write('other');
  assert.ok(frame[0]!.includes('first'));
});

test('parameters keep int64 apart from double, and a datatype may be named', () => {
  const parameters = JSON.stringify({
    big: { int64: '9007199254740993' },
    double: { double: 2 },
    yes: { bool: true },
    text: { string: 'é' },
  });
  const head = Buffer.alloc(200);
  let at = head.writeUInt8(1, 0);
  at = head.writeUInt16LE(1, at);
  at = head.writeUInt16LE(4, at);
  // rank 0, offset 0, no bytes
  at += 1 + 8 + 8;
  at = head.writeUInt8(DATA_TYPES.indexOf('FP16') + 1, at);
  at = head.writeUInt32LE(Buffer.byteLength(parameters), at);
  at += head.write(parameters, at);
  const cursor = { at: 0 };
  const result = readResult(head, cursor, []);
  assert.ok(typeof result !== 'symbol' && !(result instanceof ReceivedError));
  assert.equal(cursor.at, at);
  assert.equal(result.outputs[0]?.datatype, 'FP16');
  assert.deepEqual(
    [...result.parameters!],
    [
      ['big', 9007199254740993n],
      ['double', 2],
      ['yes', true],
      ['text', 'é'],
    ],
  );
});

test('the kind of an error is told; what is unknown counts as not executed', () => {
  for (const [byte, kind] of ['not executed', 'failed', 'answered', 'not executed'].entries()) {
    const head = Buffer.from([0, STATUS_CODES.indexOf('UNAVAILABLE'), byte, 2, 0, 0, 0, 0x6e, 0x6f]);
    const cursor = { at: 0 };
    const error = readResult(head, cursor, []);
    assert.ok(error instanceof ReceivedError);
    assert.deepEqual([error.kind, error.code, error.message], [kind, 'UNAVAILABLE', 'no']);
    assert.equal(cursor.at, head.length);
  }
});
