// The table of heads that are taken and heads that are refused: each refused one has been used to make two parsers
// disagree about where a message ends.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { headerOf, isTrailerLine, parseRequestHead, type RequestHead } from './request-head.ts';

function parse(...lines: string[]): RequestHead | undefined {
  return parseRequestHead(lines.join('\r\n'));
}

function parsed(...lines: string[]): RequestHead {
  const head = parse(...lines);
  assert.ok(head !== undefined, JSON.stringify(lines));
  return head;
}

const POST = 'POST /v2 HTTP/1.1';
const GET = 'GET /v2 HTTP/1.1';
const LONG = 'n'.repeat(15_000);

describe('refused', () => {
  const requestLines: Record<string, string> = {
    nothing: '',
    'a blank': ' ',
    'HTTP/0.9': 'GET /v2',
    'HTTP/1.2': 'GET /v2 HTTP/1.2',
    'HTTP/2.0': 'GET /v2 HTTP/2.0',
    'the preface of HTTP/2': 'PRI * HTTP/2.0',
    'a version with two digits': 'GET /v2 HTTP/1.10',
    'a version without a minor': 'GET /v2 HTTP/1',
    'a version in lower case': 'GET /v2 http/1.1',
    'another protocol': 'GET /v2 RTSP/1.0',
    'an empty target': 'GET  HTTP/1.1',
    'a target with a blank': 'GET /v2 /v3 HTTP/1.1',
    'two blanks before the target': 'GET  /v2 HTTP/1.1',
    'two blanks after the target': 'GET /v2  HTTP/1.1',
    'tabs for blanks': 'GET\t/v2\tHTTP/1.1',
    'a blank before the method': ' GET /v2 HTTP/1.1',
    'a blank at the end': 'GET /v2 HTTP/1.1 ',
    'a bare CR at the end': 'GET /v2 HTTP/1.1\r',
    'a bare CR in the target': 'GET /v\r2 HTTP/1.1',
    'a bare LF in the target': 'GET /v\n2 HTTP/1.1',
    'a bare LF at the end': 'GET /v2 HTTP/1.1\n',
    'NUL in the target': 'GET /v2\0 HTTP/1.1',
    'DEL in the target': 'GET /v2\x7f HTTP/1.1',
    'a method that is no token': 'G(T /v2 HTTP/1.1',
    'a method that is too long': `${'G'.repeat(33)} /v2 HTTP/1.1`,
    'a method that is not ASCII': 'G\xc9T /v2 HTTP/1.1',
    'the start of TLS': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  };
  for (const [what, line] of Object.entries(requestLines)) {
    test(`request line: ${what}`, () => assert.equal(parse(line, 'Host: a'), undefined));
  }

  const headers: Record<string, readonly string[]> = {
    'an empty line in between': ['Host: a', '', 'A: b'],
    'no colon': ['Host'],
    'an empty name': [': a'],
    'a blank before the colon': ['Host : a'],
    'a tab before the colon': ['Host\t: a'],
    'a folded line': ['A: b', ' c'],
    'a line folded with a tab': ['A: b', '\tc'],
    'a folded first line': [' Host: a'],
    'a blank in the name': ['Ho st: a'],
    'NUL in the name': ['Ho\0st: a'],
    'a name that is not ASCII': ['H\xf6st: a'],
    'a bracket in the name': ['Host[]: a'],
    'a bare LF after a line': ['A: b\nHost: a'],
    'a bare LF before a line': ['\nHost: a'],
    'a bare LF in the name': ['A\nHost: a'],
    'a bare CR in a value': ['A: b\rHost: a'],
    'a bare CR at the end of a value': ['A: b\r'],
    'NUL in a value': ['A: b\0c'],
    'BEL in a value': ['A: b\x07'],
    'a vertical tab around a value': ['Content-Length: \v5'],
    'DEL in a value': ['A: \x7f'],
    'a length with plus': ['Content-Length: +5'],
    'a length with minus': ['Content-Length: -5'],
    'a hexadecimal length': ['Content-Length: 0x5'],
    'a length with an exponent': ['Content-Length: 1e1'],
    'a length with a point': ['Content-Length: 5.0'],
    'a length with a separator': ['Content-Length: 1_0'],
    'a length with a blank': ['Content-Length: 1 0'],
    'an empty length': ['Content-Length:'],
    'a length that is no number': ['Content-Length: five'],
    'a length with other blanks': ['Content-Length: \xa05'],
    'a list of lengths': ['Content-Length: 5, 5'],
    'two different lengths': ['Content-Length: 5', 'content-length: 6'],
    'two equal lengths': ['Content-Length: 5', 'Content-Length: 5'],
    'a length that no number holds': [`Content-Length: ${'9'.repeat(17)}`],
    'a length of a thousand digits': [`Content-Length: ${'9'.repeat(1000)}`],
    'an encoding other than chunked': ['Transfer-Encoding: gzip'],
    'identity as encoding': ['Transfer-Encoding: identity'],
    'an empty encoding': ['Transfer-Encoding:'],
    'an encoding under chunked': ['Transfer-Encoding: gzip, chunked'],
    'an encoding over chunked': ['Transfer-Encoding: chunked, gzip'],
    'an almost chunked': ['Transfer-Encoding: xchunked'],
    'chunked with a parameter': ['Transfer-Encoding: chunked;a=b'],
    'chunked in quotes': ['Transfer-Encoding: "chunked"'],
    'chunked after a control character': ['Transfer-Encoding: \x0bchunked'],
    'chunked after another blank': ['Transfer-Encoding: \xa0chunked'],
    'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
    'chunked and something else': ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
    'a length, then chunked': ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    'chunked, then a length': ['Transfer-Encoding: chunked', 'Content-Length: 0'],
  };
  for (const [what, lines] of Object.entries(headers)) {
    test(`header: ${what}`, () => assert.equal(parse(POST, ...lines), undefined));
  }

  test('chunks in HTTP/1.0, which has none', () => {
    assert.equal(parse('POST /v2 HTTP/1.0', 'Transfer-Encoding: chunked'), undefined);
  });
});

describe('taken', () => {
  test('a request line alone: Host is not asked for, as in Triton', () => {
    const head = parsed(GET);
    assert.deepEqual(head, {
      method: 'GET',
      target: '/v2',
      rawHeaders: [],
      isOld: false,
      isKeepAlive: true,
      bodyLength: 0,
      isContinueExpected: false,
    });
  });

  test('method and target as they were sent', () => {
    assert.equal(parsed('get /v2 HTTP/1.1').method, 'get');
    assert.equal(parsed('X-Y!#$%&*+.^_`|~09 /v2 HTTP/1.1').method, 'X-Y!#$%&*+.^_`|~09');
    for (const target of [
      '*',
      '/',
      '/v2?a=%00&b#c',
      'http://a.b:80/v2',
      'a:443',
      '/v2/m\xc3\xb6',
      `/${LONG}`,
    ]) {
      assert.equal(parsed(`GET ${target} HTTP/1.1`).target, target);
    }
  });

  test('headers in the order and the case in which they came, without blanks around the values', () => {
    const head = parsed(
      GET,
      'b:2',
      'A: \t1\t ',
      'C:',
      'D: x \t y',
      'E: a:b',
      'F: m\xf6',
      `${LONG}: z`,
      "!#$%&'*+-.^_`|~0: t",
    );
    assert.deepEqual(head.rawHeaders, [
      ...[
        'b',
        '2',
        'A',
        '1',
        'C',
        '',
        'D',
        'x \t y',
        'E',
        'a:b',
        'F',
        'm\xf6',
        LONG,
        'z',
        "!#$%&'*+-.^_`|~0",
        't',
      ],
    ]);
  });

  test('thousands of headers', () => {
    const lines = Array.from({ length: 4000 }, () => 'a:');
    assert.equal(parsed(GET, ...lines).rawHeaders.length, 8000);
  });

  test('lengths', () => {
    const lengths: [readonly string[], number][] = [
      [[], 0],
      [['Content-Length: 0'], 0],
      [['Content-Length: 5'], 5],
      [['CONTENT-LENGTH:5 '], 5],
      [['Content-Length: 0005'], 5],
      [[`Content-Length: ${'0'.repeat(1000)}5`], 5],
      [['Content-Length: 9007199254740991'], Number.MAX_SAFE_INTEGER],
      [['Transfer-Encoding: chunked'], -1],
      [['transfer-encoding:\tCHUNKED '], -1],
    ];
    for (const [lines, length] of lengths)
      assert.equal(parsed(POST, ...lines).bodyLength, length, lines.join());
  });

  test('a name that only looks like one of the framing', () => {
    const head = parsed(POST, 'Content_Length: 5', 'Transfer-Encodinh: gzip', 'Content-Lengt1: x');
    assert.equal(head.bodyLength, 0);
  });
});

describe('connection', () => {
  const cases: [string, readonly string[], boolean][] = [
    ['1', [], true],
    ['1', ['close'], false],
    ['1', ['Close'], false],
    ['1', ['keep-alive'], true],
    ['1', ['keep-alive, close'], false],
    ['1', ['close, keep-alive'], false],
    ['1', ['keep-alive', 'close'], false],
    ['1', ['close', 'keep-alive'], false],
    ['1', ['close', 'upgrade'], false],
    ['1', ['upgrade ,\tclose\t, te'], false],
    ['1', ['closed', 'not-close', ''], true],
    ['1', [',,'], true],
    ['0', [], false],
    ['0', ['close'], false],
    ['0', ['Keep-Alive'], true],
    ['0', ['te, keep-alive'], true],
    ['0', ['keep-alive, close'], false],
    ['0', ['te'], false],
  ];
  for (const [minor, values, isKeepAlive] of cases) {
    test(`HTTP/1.${minor} ${JSON.stringify(values)} → ${isKeepAlive ? 'kept' : 'closed'}`, () => {
      const head = parsed(`GET / HTTP/1.${minor}`, ...values.map((value) => `Connection: ${value}`));
      assert.equal(head.isKeepAlive, isKeepAlive);
      assert.equal(head.isOld, minor === '0');
    });
  }
});

test('Expect: only 100-continue counts, and not in HTTP/1.0', () => {
  assert.equal(parsed(POST, 'Expect: 100-continue').isContinueExpected, true);
  assert.equal(parsed(POST, 'EXPECT: 100-Continue').isContinueExpected, true);
  assert.equal(parsed(POST, 'Expect: something').isContinueExpected, false);
  assert.equal(parsed('POST / HTTP/1.0', 'Expect: 100-continue').isContinueExpected, false);
});

test('headerOf ignores the case of names; the first one counts', () => {
  const head = parsed(GET, 'X-A: 1', 'x-a: 2', 'X-B:');
  assert.equal(headerOf(head, 'x-a'), '1');
  assert.equal(headerOf(head, 'x-b'), '');
  assert.equal(headerOf(head, 'x-c'), undefined);
});

test('isTrailerLine: the grammar of a header, but none that frames', () => {
  for (const line of ['A: b', 'a:', 'Digest: x=\t"y"', 'B: \xe9']) assert.ok(isTrailerLine(line), line);
  for (const line of [
    '',
    'A',
    ': b',
    'A : b',
    ' A: b',
    'A: \0',
    'A: b\r',
    'GET / HTTP/1.1',
    'CONTENT-length: 5',
  ]) {
    assert.ok(!isTrailerLine(line), line);
  }
});
