// The headers of a call and the blocks of its answer, read back with our own decoder.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { encodingFor, findHeader, headBlock, readCallHeaders, statusBlock } from './grpc-headers.ts';
import { HpackDecoder } from './http2/hpack-decoder.ts';
import type { HeaderPair } from './http2/http2-types.ts';

function timeoutOf(text: string): number {
  return readCallHeaders([['grpc-timeout', text]]).timeoutMs;
}

function decode(block: Buffer): HeaderPair[] {
  return [...new HpackDecoder(16 * 1024).decode(block, 0, block.length).pairs];
}

function messageOf(text: string): string | undefined {
  return findHeader(decode(statusBlock({ code: 3, message: text }, false)), 'grpc-message');
}

describe('request headers', () => {
  test('are found, with defaults for those that are missing', () => {
    const pairs: HeaderPair[] = [
      [':method', 'POST'],
      [':path', '/a.B/C'],
      ['content-type', 'application/grpc+proto'],
      ['grpc-encoding', 'gzip'],
      ['grpc-accept-encoding', 'gzip,deflate'],
    ];
    const headers = readCallHeaders(pairs);
    assert.equal(headers.method, 'POST');
    assert.equal(headers.path, '/a.B/C');
    assert.equal(headers.contentType, 'application/grpc+proto');
    assert.equal(headers.encoding, 'gzip');
    assert.equal(headers.acceptEncoding, 'gzip,deflate');
    assert.equal(headers.timeoutMs, Number.POSITIVE_INFINITY);
    assert.equal(readCallHeaders([]).encoding, 'identity');
    assert.equal(readCallHeaders(pairs), headers);
  });

  test('timeouts of every unit', () => {
    assert.equal(timeoutOf('2H'), 7_200_000);
    assert.equal(timeoutOf('3M'), 180_000);
    assert.equal(timeoutOf('5S'), 5000);
    assert.equal(timeoutOf('99999999m'), 99_999_999);
    assert.equal(timeoutOf('1500u'), 1.5);
    assert.equal(timeoutOf('0n'), 0);
    assert.equal(timeoutOf('500000n'), 0.5);
  });

  test('what is no timeout is none', () => {
    for (const text of ['', 'S', '5', '5s', '-1S', '1.5S', '123456789S', ' 5S', '5S ', '5SS', '٥S']) {
      assert.equal(timeoutOf(text), Number.POSITIVE_INFINITY, JSON.stringify(text));
    }
  });
});

describe('statusBlock', () => {
  test('is a whole answer, or trailers', () => {
    assert.deepEqual(decode(statusBlock({ code: 5, message: 'gone' }, true)), [
      [':status', '200'],
      ['content-type', 'application/grpc'],
      ['grpc-status', '5'],
      ['grpc-message', 'gone'],
    ]);
    assert.deepEqual(decode(statusBlock({ code: 12, message: '' }, false)), [['grpc-status', '12']]);
  });

  test('percent-encodes what is not printable ASCII, byte by byte', () => {
    assert.equal(messageOf(`'a' [1,2]: "x" ~ + &`), `'a' [1,2]: "x" ~ + &`);
    assert.equal(messageOf('100%'), '100%25');
    assert.equal(messageOf('a\nb\tc\u007f\u0000'), 'a%0Ab%09c%7F%00');
    assert.equal(messageOf('größe'), 'gr%C3%B6%C3%9Fe');
    assert.equal(messageOf('漢😀'), '%E6%BC%A2%F0%9F%98%80');
    for (const text of ['größe %41\r\n', '漢字 and 😀', '\ud800 alone']) {
      assert.equal(decodeURIComponent(messageOf(text)!), Buffer.from(text).toString());
    }
  });
});

test('the head names the encoding of messages', () => {
  assert.equal(findHeader(decode(headBlock('identity')), 'grpc-encoding'), undefined);
  assert.equal(findHeader(decode(headBlock('gzip')), 'grpc-encoding'), 'gzip');
  assert.equal(findHeader(decode(headBlock('deflate')), 'grpc-encoding'), 'deflate');
});

test('encodingFor picks as gRPC core does', () => {
  const both = 'identity, deflate, gzip';
  assert.equal(encodingFor('none', both), 'identity');
  assert.equal(encodingFor('low', both), 'gzip');
  assert.equal(encodingFor('medium', both), 'deflate');
  assert.equal(encodingFor('high', both), 'deflate');
  for (const level of ['low', 'medium', 'high'] as const) {
    assert.equal(encodingFor(level, 'gzip'), 'gzip');
    assert.equal(encodingFor(level, 'identity,deflate'), 'deflate');
    assert.equal(encodingFor(level, ''), 'identity');
    assert.equal(encodingFor(level, 'identity,br,gzipped'), 'identity');
  }
});
