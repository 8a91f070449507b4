// `InferTensorContents`: typed elements on the wire, kept as little-endian bytes. Integers are kept at the width of
// their list until the datatype is known, which may come later in the message; floats are views on the message.

import { contiguous, type TensorBytes } from '../../domain/tensor.ts';
import { ProtoError } from './proto-error.ts';
import { FIXED32, FIXED64, LENGTH, type ProtoReader, VARINT } from './proto-reader.ts';

/** The lists in the order of their field numbers, and what an element takes here; 0 for `bytes`. */
export const CONTENT_LISTS = [
  { name: 'bool', elementBytes: 1, wireType: VARINT },
  { name: 'int', elementBytes: 4, wireType: VARINT },
  { name: 'int64', elementBytes: 8, wireType: VARINT },
  { name: 'uint', elementBytes: 4, wireType: VARINT },
  { name: 'uint64', elementBytes: 8, wireType: VARINT },
  { name: 'fp32', elementBytes: 4, wireType: FIXED32 },
  { name: 'fp64', elementBytes: 8, wireType: FIXED64 },
  { name: 'bytes', elementBytes: 0, wireType: LENGTH },
] as const;

const UNPACKED_ELEMENTS_FIRST = 16;

type ContentList = (typeof CONTENT_LISTS)[number];
export type ContentName = ContentList['name'];

/** Only lists with at least one element are there. Pieces are whole elements; for `bytes` each is one element. */
export type TypedContents = Map<ContentName, Buffer[]>;

/** Reads one message to the reader's end; a second one for the same input is added to the first. */
export function readContents(reader: ProtoReader, contents: TypedContents): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    const list = CONTENT_LISTS[(tag >>> 3) - 1];
    const wireType = tag & 7;
    if (list === undefined || (wireType !== list.wireType && wireType !== LENGTH)) {
      reader.skip(tag);
      continue;
    }
    const piece = wireType === LENGTH ? readPacked(reader, list) : readUnpacked(reader, list, tag);
    if (piece.length === 0 && list.name !== 'bytes') continue;
    const pieces = contents.get(list.name);
    if (pieces === undefined) contents.set(list.name, [piece]);
    else pieces.push(piece);
  }
}

function readPacked(reader: ProtoReader, list: ContentList): Buffer {
  if (list.wireType === LENGTH) return reader.bytes();
  if (list.wireType !== VARINT) {
    // Fixed width: the bytes on the wire are those of the tensor.
    const packed = reader.bytes();
    if (packed.length % list.elementBytes === 0) return packed;
    throw new ProtoError('a packed list ends inside an element');
  }
  const outerEnd = reader.enter();
  const { at: start, end, buffer } = reader;
  let count = 0;
  for (let i = start; i < end; i++) if (buffer[i]! < 0x80) count += 1;
  const elements = Buffer.allocUnsafe(count * list.elementBytes);
  for (let at = 0; reader.at < end; at += list.elementBytes) writeElement(reader, list, elements, at);
  reader.leave(outerEnd);
  return elements;
}

/** All elements up to the next field of another kind, so that they do not cost a buffer each. */
function readUnpacked(reader: ProtoReader, list: ContentList, tag: number): Buffer {
  let elements = Buffer.allocUnsafe(UNPACKED_ELEMENTS_FIRST * list.elementBytes);
  let used = 0;
  for (;;) {
    if (used === elements.length) elements = Buffer.concat([elements], elements.length * 2);
    writeElement(reader, list, elements, used);
    used += list.elementBytes;
    const at = reader.at;
    if (at < reader.end && reader.tag() === tag) continue;
    reader.at = at;
    return elements.subarray(0, used);
  }
}

function writeElement(reader: ProtoReader, list: ContentList, target: Buffer, at: number): void {
  switch (list.name) {
    case 'bool':
      target[at] = reader.bool() ? 1 : 0;
      return;
    case 'int':
    case 'uint':
      target.writeUInt32LE(reader.uint32(), at);
      return;
    case 'fp32':
      target.set(reader.fixed(4), at);
      return;
    case 'fp64':
      target.set(reader.fixed(8), at);
      return;
    default:
      reader.copyVarint(target, at);
  }
}

/** The low bytes of each element: INT8, INT16, UINT8 and UINT16 travel as 32 bits. */
export function narrow(pieces: TensorBytes, elementBytes: number): Buffer {
  const wide = contiguous(pieces);
  const count = wide.length / 4;
  const narrowed = Buffer.allocUnsafe(count * elementBytes);
  for (let i = 0; i < count; i++) {
    narrowed[i * elementBytes] = wide[i * 4]!;
    if (elementBytes === 2) narrowed[i * 2 + 1] = wide[i * 4 + 1]!;
  }
  return narrowed;
}

/** BYTES as a tensor holds them: each element behind its length. */
export function withLengths(elements: readonly Buffer[]): Buffer {
  let byteLength = 0;
  for (const element of elements) byteLength += 4 + element.length;
  const serialized = Buffer.allocUnsafe(byteLength);
  let at = 0;
  for (const element of elements) {
    at = serialized.writeUInt32LE(element.length, at);
    serialized.set(element, at);
    at += element.length;
  }
  return serialized;
}
