// The members of a generate request as tensor data: a lone value counts as an array of one, and an array is
// counted without making a value of each element. Used by generate-request.ts alone.

import {
  COMMA,
  LEFT_BRACKET,
  LEFT_CURLY,
  QUOTE,
  RIGHT_BRACKET,
  RIGHT_CURLY,
  scanScalar,
  scanString,
  skipSpace,
} from './json-scan.ts';
import { isArray, isObject, type JsonArray, type JsonObject } from './json-value.ts';

/** The value of member `index` as an array. `text` is what `object` was parsed from. */
export function memberElements(text: Buffer, object: JsonObject, index: number): JsonArray {
  const value = object.values[index]!;
  if (isArray(value)) return value;
  const inside = valueText(text, object, index);
  // The text and not the parsed value: only the text says whether `1.0` was written, and all digits of a double.
  const wrapped = Buffer.allocUnsafe(inside.length + 2);
  wrapped[0] = LEFT_BRACKET;
  inside.copy(wrapped, 1);
  wrapped[inside.length + 1] = RIGHT_BRACKET;
  return { kind: 'array', text: wrapped, start: 0, end: wrapped.length, objects: [] };
}

function valueText(text: Buffer, object: JsonObject, index: number): Buffer {
  const { end } = object;
  let pos = object.start + 1;
  for (let i = 0; ; i++) {
    const nameEnd = scanString(text, skipSpace(text, pos, end), end);
    const colon = skipSpace(text, nameEnd, end);
    const start = skipSpace(text, colon + 1, end);
    const value = object.values[i]!;
    const after = isObject(value) || isArray(value) ? value.end : scanScalar(text, start, end);
    if (i === index) return text.subarray(start, after);
    const comma = skipSpace(text, after, end);
    pos = comma + 1;
  }
}

/** Elements of the array itself; a nested array is one. */
export function countElements(array: JsonArray): number {
  const { text } = array;
  const end = array.end - 1;
  let pos = skipSpace(text, array.start + 1, end);
  if (pos >= end) return 0;
  let count = 1;
  let depth = 0;
  while (pos < end) {
    const byte = text[pos]!;
    if (byte === QUOTE) {
      pos = scanString(text, pos, end);
      continue;
    }
    if (byte === LEFT_BRACKET || byte === LEFT_CURLY) depth += 1;
    else if (byte === RIGHT_BRACKET || byte === RIGHT_CURLY) depth -= 1;
    else if (byte === COMMA && depth === 0) count += 1;
    pos += 1;
  }
  return count;
}
