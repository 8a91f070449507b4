// HPACK without a dynamic table: a block depends on nothing but its headers, so the gRPC layer encodes the common
// ones once and sends the same bytes on every connection.

import { STATIC_TABLE } from './hpack-static-table.ts';
import type { HeaderPair } from './http2-types.ts';

/** Exact rows that have a value, and the first row of each name. */
const PAIR_INDEX = new Map<string, number>();
const NAME_INDEX = new Map<string, number>();
for (const [at, [name, value]] of STATIC_TABLE.entries()) {
  if (value !== '') PAIR_INDEX.set(`${name}\n${value}`, at + 1);
  if (!NAME_INDEX.has(name)) NAME_INDEX.set(name, at + 1);
}

/** Values are written as latin1; the caller has escaped what is not. */
export function encodeHeaderBlock(pairs: readonly HeaderPair[]): Buffer {
  const bytes: number[] = [];
  for (const [name, value] of pairs) {
    const pairIndex = PAIR_INDEX.get(`${name}\n${value}`);
    if (pairIndex !== undefined) {
      pushInteger(bytes, { value: pairIndex, prefixBits: 7, firstByte: 0x80 });
      continue;
    }
    // a literal without indexing
    const nameIndex = NAME_INDEX.get(name) ?? 0;
    pushInteger(bytes, { value: nameIndex, prefixBits: 4, firstByte: 0 });
    if (nameIndex === 0) pushText(bytes, name);
    pushText(bytes, value);
  }
  return Buffer.from(bytes);
}

function pushText(bytes: number[], text: string): void {
  pushInteger(bytes, { value: text.length, prefixBits: 7, firstByte: 0 });
  for (let at = 0; at < text.length; at++) bytes.push(text.charCodeAt(at) & 0xff);
}

/** RFC 7541, 5.1. */
function pushInteger(
  bytes: number[],
  { value, prefixBits, firstByte }: { value: number; prefixBits: number; firstByte: number },
): void {
  const prefixMax = 2 ** prefixBits - 1;
  if (value < prefixMax) {
    bytes.push(firstByte | value);
    return;
  }
  bytes.push(firstByte | prefixMax);
  let rest = value - prefixMax;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
}
