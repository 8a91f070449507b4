import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { ERROR_CODE } from './frames.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { encodeHeaderBlock } from './hpack-encoder.ts';
import { STATIC_TABLE } from './hpack-static-table.ts';
import { Http2Error } from './http2-error.ts';
import type { HeaderPair } from './http2-types.ts';
import { CODE_BITS, decodeHuffman, huffmanCodes } from './huffman.ts';

const LIST_BYTES_MAX = 16 * 1024;

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

function decode(decoder: HpackDecoder, block: Buffer): readonly HeaderPair[] {
  const { pairs, isMalformed, isTooLarge } = decoder.decode(block, 0, block.length);
  assert.deepEqual([isMalformed, isTooLarge], [false, false]);
  return pairs;
}

function isCompressionError(thrown: unknown): boolean {
  return thrown instanceof Http2Error && thrown.code === ERROR_CODE.compression;
}

const REQUESTS: readonly HeaderPair[][] = [
  [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ],
  [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
    ['cache-control', 'no-cache'],
  ],
  [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ],
];
const DATE_1 = 'Mon, 21 Oct 2013 20:13:21 GMT';
const DATE_2 = 'Mon, 21 Oct 2013 20:13:22 GMT';
const COOKIE = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const RESPONSES: readonly HeaderPair[][] = [
  [
    [':status', '302'],
    ['cache-control', 'private'],
    ['date', DATE_1],
    ['location', 'https://www.example.com'],
  ],
  [
    [':status', '307'],
    ['cache-control', 'private'],
    ['date', DATE_1],
    ['location', 'https://www.example.com'],
  ],
  [
    [':status', '200'],
    ['cache-control', 'private'],
    ['date', DATE_2],
    ['location', 'https://www.example.com'],
    ['content-encoding', 'gzip'],
    ['set-cookie', COOKIE],
  ],
];

describe('the examples of RFC 7541, appendix C', () => {
  test('C.2: single headers', () => {
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    const cases: readonly (readonly [string, HeaderPair])[] = [
      ['400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572', ['custom-key', 'custom-header']],
      ['040c 2f73 616d 706c 652f 7061 7468', [':path', '/sample/path']],
      ['1008 7061 7373 776f 7264 0673 6563 7265 74', ['password', 'secret']],
      ['82', [':method', 'GET']],
      ['be', ['custom-key', 'custom-header']],
    ];
    for (const [hex, pair] of cases) assert.deepEqual(decode(decoder, bytesOf(hex)), [pair]);
  });

  const series: readonly (readonly [string, readonly string[], readonly HeaderPair[][]])[] = [
    [
      'C.3: requests without Huffman',
      [
        '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '8286 84be 5808 6e6f 2d63 6163 6865',
        '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ],
      REQUESTS,
    ],
    [
      'C.4: requests with Huffman',
      [
        '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
        '8286 84be 5886 a8eb 1064 9cbf',
        '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ],
      REQUESTS,
    ],
    // the table of 256 bytes is set by the update 3f e1 01 in front of the first block
    [
      'C.5: responses without Huffman and with eviction',
      [
        '3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
        '4803 3330 37c1 c0bf',
        '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31',
      ],
      RESPONSES,
    ],
    [
      'C.6: responses with Huffman and with eviction',
      [
        '3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3',
        '4883 640e ffc1 c0bf',
        '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
      ],
      RESPONSES,
    ],
  ];
  for (const [name, blocks, lists] of series) {
    test(name, () => {
      const decoder = new HpackDecoder(LIST_BYTES_MAX);
      for (const [at, hex] of blocks.entries()) assert.deepEqual(decode(decoder, bytesOf(hex)), lists[at]);
    });
  }
});

describe('the Huffman code', () => {
  /** As an encoder of RFC 7541 would; the product never needs one. */
  function encode(text: Buffer): Buffer {
    const codes = huffmanCodes();
    let bits = '';
    for (const symbol of text) {
      const { code, bits: length } = codes[symbol]!;
      bits += code.toString(2).padStart(length, '0');
    }
    bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
    return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  }

  test('is complete and has the codes of appendix B', () => {
    assert.equal(CODE_BITS.length, 257);
    assert.equal(
      CODE_BITS.reduce((sum, bits) => sum + 2 ** -bits, 0),
      1,
    );
    const codes = huffmanCodes();
    assert.deepEqual(codes[48], { code: 0x0, bits: 5 });
    assert.deepEqual(codes[0], { code: 0x1ff8, bits: 13 });
    assert.deepEqual(codes[255], { code: 0x3ffffee, bits: 26 });
    assert.deepEqual(codes[10], { code: 0x3ffffffc, bits: 30 });
    assert.deepEqual(codes[256], { code: 0x3fffffff, bits: 30 });
  });

  test('gives every text back', () => {
    const random = createPrng(7);
    for (let round = 0; round < 500; round++) {
      const text = Buffer.from(Array.from({ length: random.integer(0, 60) }, () => random.integer(0, 255)));
      const code = encode(text);
      assert.equal(decodeHuffman(code, 0, code.length), text.toString('latin1'));
    }
    const long = Buffer.alloc(20_000, 'a');
    const code = encode(long);
    assert.equal(decodeHuffman(code, 0, code.length), long.toString('latin1'));
  });

  test('refuses padding that is long or not of ones, and the end of string', () => {
    for (const hex of ['ff', 'ffff', '00', '1fff', 'ffffffff', 'ffffffffff', 'fffffffc', '18']) {
      assert.throws(() => decodeHuffman(bytesOf(hex), 0, hex.length / 2), isCompressionError, hex);
    }
    assert.equal(decodeHuffman(bytesOf('07'), 0, 1), '0');
  });
});

describe('HpackDecoder', () => {
  test('reads what encodeHeaderBlock writes, long values included', () => {
    const pairs: HeaderPair[] = [
      [':status', '200'],
      [':status', '418'],
      ['content-type', 'application/grpc'],
      ['grpc-message', 'x'.repeat(5000)],
      ['empty', ''],
      ['date', ''],
    ];
    assert.deepEqual(decode(new HpackDecoder(LIST_BYTES_MAX), encodeHeaderBlock(pairs)), pairs);
    assert.deepEqual(encodeHeaderBlock([[':status', '200']]), bytesOf('88'));
  });

  test('knows the static table', () => {
    assert.equal(STATIC_TABLE.length, 61);
    for (const [at, pair] of STATIC_TABLE.entries()) {
      const decoder = new HpackDecoder(LIST_BYTES_MAX);
      assert.deepEqual(decode(decoder, Buffer.from([0x80 | (at + 1)])), [pair]);
    }
    assert.deepEqual(STATIC_TABLE[60], ['www-authenticate', '']);
  });

  test('refuses what is not HPACK', () => {
    const wrong = {
      'index 0': '80',
      'index beyond the table': 'be',
      'name index beyond the table': '7f00 00',
      'block ends in an integer': 'ff',
      'integer too large': 'ff ff ff ff ff ff ff 00',
      'integer that never ends': 'ff 80 80 80 80 80 80 80 80 80 80 00',
      'block ends in a text': '400a 6375',
      'text length beyond the block': '00 7f ff 7f 61',
      'value is missing': '40 01 61',
      'table size after a header': '82 20',
      'table size above the setting': '3f e2 1f',
    };
    for (const [what, hex] of Object.entries(wrong)) {
      const block = bytesOf(hex);
      const decoder = new HpackDecoder(LIST_BYTES_MAX);
      assert.throws(() => decoder.decode(block, 0, block.length), isCompressionError, what);
    }
  });

  test('marks names and values that a header must not have', () => {
    const wrong: HeaderPair[] = [
      ['Upper', 'a'],
      ['', 'a'],
      ['a b', 'c'],
      ['a', 'b\nc'],
      ['a', '\0'],
      ['a:', 'b'],
    ];
    for (const pair of wrong) {
      const block = encodeHeaderBlock([pair]);
      assert.equal(new HpackDecoder(LIST_BYTES_MAX).decode(block, 0, block.length).isMalformed, true);
    }
  });

  test('a small block that stands for a large list is not kept', () => {
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    const insert = Buffer.concat([bytesOf('40 01 61 7f a10f'), Buffer.alloc(2080, 'x')]);
    decode(decoder, insert.subarray(0, 6 + 2080));
    const bomb = Buffer.alloc(10_000, 0xbe);
    const { pairs, isTooLarge } = decoder.decode(bomb, 0, bomb.length);
    assert.equal(isTooLarge, true);
    assert.ok(pairs.length < 10, `${pairs.length} pairs`);
    // the table is as it was
    assert.equal(decode(decoder, Buffer.from([0xbe]))[0]![0], 'a');
  });

  test('counts a change only when the table has changed', () => {
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    const before = decoder.changeCount;
    decode(decoder, bytesOf('82 040c 2f73 616d 706c 652f 7061 7468'));
    assert.equal(decoder.changeCount, before);
    decode(decoder, bytesOf('4001 6101 62'));
    const inserted = decoder.changeCount;
    assert.notEqual(inserted, before);
    decode(decoder, bytesOf('20'));
    assert.notEqual(decoder.changeCount, inserted);
  });

  test('an entry larger than the table empties it', () => {
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    decode(decoder, bytesOf('4001 6101 62'));
    decode(
      decoder,
      Buffer.concat([bytesOf('40 01 61 7f a11f'), Buffer.alloc(0x7f + 0x21 + 0x1f * 128, 'x')]),
    );
    assert.throws(() => decoder.decode(Buffer.from([0xbe]), 0, 1), isCompressionError);
  });

  test('many insertions keep the newest within 4096 bytes', () => {
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    for (let i = 0; i < 1000; i++) {
      const name = `n${String(i).padStart(3, '0')}`;
      const literal = Buffer.concat([Buffer.from([0x40, 4]), Buffer.from(name), Buffer.from([0])]);
      decode(decoder, literal);
    }
    // 36 bytes each: 113 fit
    assert.deepEqual(decode(decoder, Buffer.from([0xbe])), [['n999', '']]);
    assert.deepEqual(decode(decoder, bytesOf('ff 2f')), [['n887', '']]);
    assert.throws(() => decoder.decode(bytesOf('ff 30'), 0, 2), isCompressionError);
  });
});
