// The Huffman code of HPACK (RFC 7541, appendix B), decoded with one table look-up per byte. Called by the HPACK
// decoder only; we never send Huffman text. The code is canonical: the lengths of its codes are all that must be
// known, codes of one length follow each other in the order of their symbols.

import { ERROR_CODE } from './frames.ts';
import { Http2Error } from './http2-error.ts';

// biome-ignore format: sixteen to a row, as in the RFC's table
export const CODE_BITS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30, // the end of string: must never be sent
];

const CODE_BITS_MAX = 30;
const END_OF_STRING = 256;
/** The shortest code has five bits, so text is at most 8/5 of its code. */
const CODE_BITS_MIN = 5;

export interface HuffmanCode {
  readonly code: number;
  readonly bits: number;
}

/** symbol → code. */
export function huffmanCodes(): HuffmanCode[] {
  const codes: HuffmanCode[] = [];
  let next = 0;
  for (let bits = CODE_BITS_MIN; bits <= CODE_BITS_MAX; bits++) {
    next *= 2;
    for (let symbol = 0; symbol < CODE_BITS.length; symbol++) {
      if (CODE_BITS[symbol] === bits) codes[symbol] = { code: next++, bits };
    }
  }
  return codes;
}

/**
 * A tree with 256 branches, one row of 256 numbers per inner node. A number is either a leaf, LEAF | symbol << 4 |
 * the bits of the last byte that belong to the code, or the index of a deeper row. No code is left out, so no cell is.
 */
const LEAF = 1 << 16;
const TREE = buildTree();

function buildTree(): Uint32Array {
  const rows: Uint32Array[] = [new Uint32Array(256)];
  huffmanCodes().forEach(({ code, bits }, symbol) => {
    let row = rows[0]!;
    let bitsLeft = bits;
    while (bitsLeft > 8) {
      bitsLeft -= 8;
      const branch = (code >>> bitsLeft) & 0xff;
      if (row[branch] === 0) {
        row[branch] = rows.length;
        rows.push(new Uint32Array(256));
      }
      row = rows[row[branch]!]!;
    }
    const first = (code << (8 - bitsLeft)) & 0xff;
    row.fill(LEAF | (symbol << 4) | bitsLeft, first, first + (1 << (8 - bitsLeft)));
  });
  const tree = new Uint32Array(rows.length * 256);
  for (const [index, row] of rows.entries()) tree.set(row, index * 256);
  return tree;
}

/** Most texts are short; a longer one gets a buffer of its own. */
const SHORT_TEXT = Buffer.allocUnsafeSlow(4096);

/** The text as latin1, one character per byte; throws a compression error for codes that are none. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string {
  const lengthMax = Math.ceil(((end - start) * 8) / CODE_BITS_MIN);
  const text = lengthMax <= SHORT_TEXT.length ? SHORT_TEXT : Buffer.allocUnsafe(lengthMax);
  let length = 0;
  let row = 0;
  let pending = 0;
  let pendingBits = 0;
  // bits since the last complete code; more than seven at the end are no padding
  let openBits = 0;
  for (let at = start; at < end; at++) {
    pending = ((pending & 0xff) << 8) | bytes[at]!;
    pendingBits += 8;
    openBits += 8;
    while (pendingBits >= 8) {
      const cell = TREE[row + ((pending >>> (pendingBits - 8)) & 0xff)]!;
      if (cell < LEAF) {
        row = cell * 256;
        pendingBits -= 8;
        continue;
      }
      text[length++] = symbolOf(cell);
      pendingBits -= cell & 0xf;
      openBits = pendingBits;
      row = 0;
    }
  }
  while (pendingBits > 0) {
    const cell = TREE[row + ((pending << (8 - pendingBits)) & 0xff)]!;
    if (cell < LEAF || (cell & 0xf) > pendingBits) break;
    text[length++] = symbolOf(cell);
    pendingBits -= cell & 0xf;
    openBits = pendingBits;
    row = 0;
  }
  const padding = (1 << pendingBits) - 1;
  if (openBits > 7 || (pending & padding) !== padding) throw badText();
  return text.toString('latin1', 0, length);
}

function symbolOf(cell: number): number {
  const symbol = (cell & (LEAF - 1)) >>> 4;
  if (symbol === END_OF_STRING) throw badText();
  return symbol;
}

function badText(): Http2Error {
  return new Http2Error(ERROR_CODE.compression, 'bad Huffman text');
}
