// Numbers whose double Triton was seen to print, and agreement with the nearest double where both are exact.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import { rapidjsonDouble } from './rapidjson-double.ts';

function read(text: string): number {
  const bytes = Buffer.from(text);
  return rapidjsonDouble(bytes, 0, bytes.length);
}

test('integers beyond 64 bits are gathered in a double, as recorded', () => {
  assert.equal(read('123456789012345680000'), 1.2345678901234567e20);
});

test('zero keeps its sign only as a double', () => {
  assert.ok(Object.is(read('-0'), 0));
  assert.ok(Object.is(read('-0.0'), -0));
});

test('numbers of at most fifteen digits are exact', () => {
  const prng = createPrng(7);
  for (let i = 0; i < 2000; i++) {
    const digits = String(Math.floor(prng.float() * 1e15));
    const at = Math.floor(prng.float() * digits.length);
    const text = `${digits.slice(0, at) || '0'}.${digits.slice(at)}`;
    assert.equal(read(text), Number(text), text);
  }
});

test('other numbers are within two units of the last place', () => {
  const prng = createPrng(11);
  for (let i = 0; i < 5000; i++) {
    const text = `${prng.float() * 10}e${Math.floor(prng.float() * 600) - 300}`;
    const value = read(text);
    const nearest = Number(text);
    assert.ok(Math.abs(value - nearest) <= Math.abs(nearest) * 2 ** -51, `${text}: ${value}`);
  }
});

test('the ends of the range', () => {
  assert.equal(read('1e308'), 1e308);
  assert.equal(read('1e-320'), 1e-320);
  assert.equal(read('1e-99999'), 0);
});
