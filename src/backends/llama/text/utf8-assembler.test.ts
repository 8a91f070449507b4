// Characters whole, whatever the cuts, and equal to decoding all bytes at once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { Utf8Assembler } from './utf8-assembler.ts';

test('holds an incomplete character until it is whole', () => {
  const assembler = new Utf8Assembler();
  const bytes = Buffer.from('a😀b');
  assert.equal(assembler.push(bytes.subarray(0, 3)), 'a');
  assert.equal(assembler.push(bytes.subarray(3, 4)), '');
  assert.equal(assembler.push(bytes.subarray(4)), '😀b');
  assert.equal(assembler.flush(), '');
});

test('an incomplete character at the end becomes U+FFFD', () => {
  const assembler = new Utf8Assembler();
  assert.equal(assembler.push(Uint8Array.of(0x61, 0xe2, 0x82)), 'a');
  assert.equal(assembler.flush(), '\ufffd');
  assert.equal(assembler.push(Buffer.from('next')), 'next');
});

test('keeps a byte order mark, which is a character of the text', () => {
  assert.equal(new Utf8Assembler().push(Buffer.from('\ufeffa')), '\ufeffa');
});

test('cut bytes and bytes in one piece give the same text', () => {
  const random = createPrng(9);
  for (let round = 0; round < 2000; round++) {
    const valid = Buffer.from(
      Array.from({ length: 8 }, () => random.pick(['a', 'ß', '€', '😀', '\0'])).join(''),
    );
    const noise = Uint8Array.from({ length: 4 }, () => random.integer(0, 255));
    const bytes = random.boolean() ? valid : Buffer.concat([valid, noise, valid]);
    const assembler = new Utf8Assembler();
    let text = '';
    for (let at = 0; at < bytes.length; ) {
      const length = random.integer(1, 4);
      const delta = assembler.push(bytes.subarray(at, at + length));
      assert.doesNotMatch(delta, /\p{Surrogate}/u);
      text += delta;
      at += length;
    }
    assert.equal(text + assembler.flush(), new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  }
});
