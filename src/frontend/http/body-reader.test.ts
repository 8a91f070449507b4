// Bodies by length and by chunks, cut at every possible and at random points.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HTTP_BODY_BYTES_MAX, HTTP_CHUNKS_MAX } from '../../domain/limits.ts';
import { createPrng, type Prng } from '../../lib/prng.ts';
import { BodyReader, type ReadResult } from './body-reader.ts';

interface Outcome {
  readonly result: ReadResult;
  readonly body: Buffer;
  /** What follows the body, pieces that were never pushed included. */
  readonly rest: Buffer;
}

function readAll(pieces: readonly Buffer[], options: { bodyLength: number; isKept: boolean }): Outcome {
  const reader = new BodyReader(options);
  let result: ReadResult = { kind: 'more' };
  for (const [i, piece] of pieces.entries()) {
    result = reader.push(piece);
    if (result.kind === 'more') continue;
    const used = result.kind === 'done' ? result.used : 0;
    const rest = Buffer.concat([piece.subarray(used), ...pieces.slice(i + 1)]);
    return { result, body: joined(reader), rest };
  }
  return { result, body: joined(reader), rest: Buffer.alloc(0) };
}

function joined(reader: BodyReader): Buffer {
  const { pieces, byteLength } = reader.body;
  const bytes = Buffer.concat(pieces);
  assert.equal(bytes.length, byteLength);
  return bytes;
}

function readChunked(text: string): Outcome {
  return readAll([Buffer.from(text, 'latin1')], { bodyLength: -1, isKept: true });
}

function cut(bytes: Buffer, random: Prng): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = random.boolean(0.3) ? 1 : random.integer(1, 40);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

function randomBytes(random: Prng, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++)
    bytes[i] = random.boolean(0.2) ? random.pick([13, 10, 48]) : random.uint32();
  return bytes;
}

function encodeChunked(bytes: Buffer, random: Prng): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const data = bytes.subarray(at, at + random.integer(1, 50));
    const size = data.length.toString(16).padStart(random.integer(1, 4), '0');
    const extension = random.pick(['', '', ';a', ';a=b', ';a="b; \\"\xe9";c']);
    parts.push(Buffer.from(`${random.boolean() ? size : size.toUpperCase()}${extension}\r\n`, 'latin1'));
    parts.push(data, Buffer.from('\r\n'));
    at += data.length;
  }
  const trailers = random.pick(['', 'A: b\r\n', 'A: b\r\nC:\r\n']);
  parts.push(Buffer.from(`${random.pick(['0', '000', '0;x'])}\r\n${trailers}\r\n`));
  return Buffer.concat(parts);
}

describe('whatever the cuts', () => {
  test('chunks give the bytes, and what follows is left', () => {
    const random = createPrng(11);
    for (let round = 0; round < 1500; round++) {
      const bytes = randomBytes(random, random.integer(0, 300));
      const rest = randomBytes(random, random.integer(0, 30));
      const isKept = random.boolean(0.8);
      const wire = Buffer.concat([encodeChunked(bytes, random), rest]);
      const outcome = readAll(cut(wire, random), { bodyLength: -1, isKept });
      assert.equal(outcome.result.kind, 'done', `round ${round}`);
      assert.deepEqual(outcome.body, isKept ? bytes : Buffer.alloc(0), `round ${round}`);
      assert.deepEqual(outcome.rest, rest, `round ${round}`);
    }
  });

  test('a known length gives the bytes, and what follows is left', () => {
    const random = createPrng(12);
    for (let round = 0; round < 500; round++) {
      const bytes = randomBytes(random, random.integer(1, 300));
      const rest = randomBytes(random, random.integer(0, 30));
      const isKept = random.boolean(0.8);
      const options = { bodyLength: bytes.length, isKept };
      const outcome = readAll(cut(Buffer.concat([bytes, rest]), random), options);
      assert.equal(outcome.result.kind, 'done');
      assert.deepEqual(outcome.body, isKept ? bytes : Buffer.alloc(0));
      assert.deepEqual(outcome.rest, rest);
    }
  });

  test('a message that breaks off needs more, at every byte', () => {
    const wire = Buffer.from('5;x=y\r\nhello\r\n00b\r\nhello\r\nworl\r\n0\r\nA: b\r\n\r\n');
    for (let length = 0; length < wire.length; length++) {
      const options = { bodyLength: -1, isKept: true };
      assert.equal(readAll([wire.subarray(0, length)], options).result.kind, 'more', `${length} bytes`);
    }
    assert.equal(readChunked(wire.toString('latin1')).body.toString(), 'hellohello\r\nworl');
  });
});

test('pieces are views, not copies', () => {
  const piece = Buffer.from('hello');
  const reader = new BodyReader({ bodyLength: 4, isKept: true });
  assert.deepEqual(reader.push(piece), { kind: 'done', used: 4 });
  piece[0] = 0x48;
  assert.equal(reader.body.pieces[0]?.toString(), 'Hell');
});

describe('not HTTP', () => {
  const texts: Record<string, string> = {
    'no size': '\r\nhello',
    'an extension without a size': ';a=b\r\n',
    'a size that is not hexadecimal': 'g\r\n',
    'a size with 0x': '0x5\r\nhello\r\n0\r\n\r\n',
    'a size with plus': '+5\r\nhello\r\n0\r\n\r\n',
    'a size with minus': '-5\r\nhello\r\n0\r\n\r\n',
    'a blank before the size': ' 5\r\nhello\r\n0\r\n\r\n',
    'a blank after the size': '5 \r\nhello\r\n0\r\n\r\n',
    'a tab before an extension': '5\t;a\r\nhello\r\n0\r\n\r\n',
    'two sizes': '5,5\r\nhello\r\n0\r\n\r\n',
    'a size that no number holds': 'fffffffffffffffff\r\n',
    'a size that wraps to 5 in 64 bits': '10000000000000005\r\nhello\r\n0\r\n\r\n',
    'LF after the size': '5\nhello\r\n0\r\n\r\n',
    'CR after the size': '5\rhello\r\n0\r\n\r\n',
    'an extension without a name': '5;\r\nhello\r\n0\r\n\r\n',
    'an extension that is no token': '5;a=b/\r\nhello\r\n0\r\n\r\n',
    'an extension with an open quote': '5;a="b\r\nhello\r\n0\r\n\r\n',
    'CR in an extension': '5;a\rb\r\nhello\r\n0\r\n\r\n',
    'LF in an extension': '5;a\nb\r\nhello\r\n0\r\n\r\n',
    'NUL in an extension': '5;a\0b\r\nhello\r\n0\r\n\r\n',
    'no line end after the data': '5\r\nhello0\r\n\r\n',
    'more data than said': '5\r\nhelloo\r\n0\r\n\r\n',
    'LF after the data': '5\r\nhello\n0\r\n\r\n',
    'CR after the data': '5\r\nhello\r0\r\n\r\n',
    'an empty line after the data': '5\r\nhello\r\n\r\n0\r\n\r\n',
    'LF after the last chunk': '0\n\r\n',
    'LF as last line': '0\r\n\n',
    'a request as trailer': '0\r\nGET / HTTP/1.1\r\n\r\n',
    'a length as trailer': '0\r\nContent-Length: 5\r\n\r\n',
    'an encoding as trailer': '0\r\ntransfer-encoding: chunked\r\n\r\n',
    'a connection option as trailer': '0\r\nConnection: close\r\n\r\n',
    'a folded trailer': '0\r\nA: b\r\n c\r\n\r\n',
    'a trailer with CR': '0\r\nA: b\rc\r\n\r\n',
    'an extension that is too long': `5;${'a'.repeat(5000)}\r\nhello\r\n0\r\n\r\n`,
    'an extension that never ends': `5;${'a'.repeat(5000)}`,
    'a trailer that is too long': `0\r\nA: ${'a'.repeat(5000)}\r\n\r\n`,
    'too many trailers': `0\r\n${'A: b\r\n'.repeat(3000)}\r\n`,
  };
  for (const [what, text] of Object.entries(texts)) {
    test(what, () => {
      assert.equal(readChunked(text).result.kind, 'bad');
      const bytes = Buffer.from(text, 'latin1');
      const single = Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
      assert.equal(readAll(single, { bodyLength: -1, isKept: false }).result.kind, 'bad', 'byte by byte');
    });
  }
});

describe('refused', () => {
  test('a length beyond the bound, with its first byte', () => {
    const options = { bodyLength: HTTP_BODY_BYTES_MAX + 1, isKept: true };
    const { result, body } = readAll([Buffer.from('x')], options);
    assert.ok(result.kind === 'refused' && result.error.message.includes('larger than the maximum'));
    assert.equal(body.length, 0);
  });

  test('a chunk that would take the body beyond the bound', () => {
    const size = HTTP_BODY_BYTES_MAX.toString(16);
    assert.equal(readChunked(`1\r\na\r\n${size}\r\nx`).result.kind, 'refused');
    assert.equal(readChunked(`${size}\r\nx`).result.kind, 'more');
  });

  test('one chunk more than the bound; the last, empty one does not count', () => {
    const most = '1\r\na\r\n'.repeat(HTTP_CHUNKS_MAX);
    const taken = readChunked(`${most}0\r\n\r\n`);
    assert.equal(taken.result.kind, 'done');
    assert.equal(taken.body.length, HTTP_CHUNKS_MAX);
    const { result } = readChunked(`${most}1\r\na\r\n0\r\n\r\n`);
    assert.ok(result.kind === 'refused' && result.error.message.includes('non-empty chunks'));
  });
});

test('a body that is longer than wanted is counted and dropped, what follows it is kept', () => {
  const text = 'x'.repeat(10);
  for (const [keptBytesMax, keptBytes] of [
    [10, 10],
    [9, 0],
  ] as const) {
    for (const size of [1, 3, 11]) {
      const reader = new BodyReader({ bodyLength: 10, isKept: true, keptBytesMax });
      const bytes = Buffer.from(`${text}GET`);
      let result: ReadResult = { kind: 'more' };
      for (let at = 0; result.kind === 'more'; at += size)
        result = reader.push(bytes.subarray(at, at + size));
      assert.equal(result.kind, 'done');
      assert.equal(reader.body.byteLength, 10);
      assert.equal(Buffer.concat(reader.body.pieces).length, keptBytes);
    }
  }
});
