// One tensor in the header of an EXECUTE or a RESPONSE frame: which one, its shape, and where its bytes are.
//
//   u16 index │ u8 rank │ rank × u64 dims │ u64 offset │ u64 bytes

import { readU64, writeU64 } from './protocol.ts';

export interface TensorRange {
  readonly index: number;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly byteLength: number;
}

/** Where the next read begins. */
export interface HeaderCursor {
  at: number;
}

export function rangeBytesOf(shape: readonly number[]): number {
  return 19 + shape.length * 8;
}

export function writeRange(
  target: Buffer,
  at: number,
  tensor: { index: number; shape: readonly number[]; byteLength: number },
  offset: number,
): number {
  target.writeUInt16LE(tensor.index, at);
  target.writeUInt8(tensor.shape.length, at + 2);
  let next = at + 3;
  for (const dim of tensor.shape) next = writeU64(target, dim, next);
  next = writeU64(target, offset, next);
  return writeU64(target, tensor.byteLength, next);
}

export function readRange(source: Buffer, cursor: HeaderCursor): TensorRange {
  const index = source.readUInt16LE(cursor.at);
  const rank = source.readUInt8(cursor.at + 2);
  let at = cursor.at + 3;
  const shape: number[] = [];
  for (let d = 0; d < rank; d++, at += 8) shape.push(readU64(source, at));
  cursor.at = at + 16;
  return { index, shape, offset: readU64(source, at), byteLength: readU64(source, at + 8) };
}
