import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseEncoding } from './accept-encoding.ts';

const CHOICES: readonly [accept: string, coding: string][] = [
  ['', 'identity'],
  ['gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['identity', 'identity'],
  ['gzip, deflate', 'gzip'],
  ['deflate,gzip', 'deflate'],
  ['identity, gzip', 'identity'],
  ['gzip;q=0.5, deflate;q=0.8', 'deflate'],
  ['gzip;q=0.8, deflate;q=0.8', 'gzip'],
  ['gzip;q=0', 'identity'],
  ['gzip;q=0.1, identity;q=0.5', 'identity'],
  ['br, zstd', 'identity'],
  ['br, gzip', 'gzip'],
  ['*', 'identity'],
  ['GZIP', 'identity'],
  ['gzip;q=high', 'identity'],
  ['gzip;q=', 'identity'],
  [',,gzip,', 'gzip'],
];

for (const [accept, coding] of CHOICES) {
  test(`"${accept}" gets ${coding}`, () => assert.equal(chooseEncoding(accept), coding));
}
