// BYTES ↔ string tensors. On the wire each element is a 4-byte length and its bytes; ONNX Runtime takes
// NUL-terminated strings, so an element ends at its first NUL, as it does in Triton, and gives back one run of
// bytes with offsets.

import { invalidArgument, type StatusError } from '../../domain/status.ts';
import { addressOfBytes, allocateBytes, NativeWords } from './native-memory.ts';

export interface StringSlice {
  readonly offset: number;
  readonly byteLength: number;
  readonly elementCount: number;
}

export interface StringPointers {
  /** One address per element of the whole batch; the strings live in `memory`. */
  readonly pointers: NativeWords;
  readonly memory: Buffer;
  /** By request; undefined where its bytes were sound. */
  readonly errors: readonly (StatusError | undefined)[];
}

/**
 * Elements that a broken request lacks are empty strings: the request fails, the rest of the batch still runs.
 *
 *   memory: │ len │ a b c │ len │ d e │ … │ 0 │     each length is zeroed once it has been read: it ends the
 *                 ^             ^                   string before it
 */
export function parseStrings(
  inputName: string,
  payload: Buffer,
  slices: readonly StringSlice[],
): StringPointers {
  const byteCount = slices.reduce((sum, slice) => sum + slice.byteLength, 0);
  const elementCount = slices.reduce((sum, slice) => sum + slice.elementCount, 0);
  const memory = allocateBytes(byteCount + 1);
  const base = Number(addressOfBytes(memory));
  const pointers = new NativeWords(elementCount);
  const errors: (StatusError | undefined)[] = [];
  let position = 0;
  let element = 0;
  for (const slice of slices) {
    payload.copy(memory, position, slice.offset, slice.offset + slice.byteLength);
    const end = position + slice.byteLength;
    const firstElement = element;
    let error: StatusError | undefined;
    while (position < end && error === undefined) {
      const remaining = end - position - 4;
      const length = remaining < 0 ? 0 : memory.readUInt32LE(position);
      if (remaining < 0) error = incompleteLength(inputName, end - position);
      else if (element - firstElement === slice.elementCount) error = tooMany(inputName, slice.elementCount);
      else if (length > remaining) error = incompleteData(inputName, length, remaining);
      else {
        memory[position] = 0;
        pointers.setNumber(element++, base + position + 4);
        position += 4 + length;
      }
    }
    const count = element - firstElement;
    if (error === undefined && count < slice.elementCount) {
      error = invalidArgument(
        `expected ${slice.elementCount} string elements for inference input '${inputName}', got ${count}`,
      );
    }
    if (error !== undefined) memory[position] = 0;
    while (element < firstElement + slice.elementCount) pointers.setNumber(element++, base + byteCount);
    errors.push(error);
    position = end;
  }
  memory[byteCount] = 0;
  return { pointers, memory, errors };
}

/** Bytes and offsets as ONNX Runtime gives them → elements with their lengths. */
export function frameStrings(content: Buffer, offsets: NativeWords, elementCount: number): Buffer {
  const framed = Buffer.allocUnsafe(content.length + 4 * elementCount);
  let position = 0;
  for (let i = 0; i < elementCount; i++) {
    const start = offsets.number(i);
    const end = i + 1 < elementCount ? offsets.number(i + 1) : content.length;
    position = framed.writeUInt32LE(end - start, position);
    position += content.copy(framed, position, start, end);
  }
  return framed;
}

/** Where element `index` begins in framed bytes. */
export function framedOffset(
  offsets: NativeWords,
  index: number,
  whole: { elementCount: number; byteLength: number },
): number {
  return index < whole.elementCount ? offsets.number(index) + 4 * index : whole.byteLength;
}

function incompleteLength(inputName: string, available: number): StatusError {
  return invalidArgument(
    `incomplete string length indicator for inference input '${inputName}', expecting 4 bytes but only ` +
      `${available} bytes available`,
  );
}

function incompleteData(inputName: string, length: number, available: number): StatusError {
  return invalidArgument(
    `incomplete string data for inference input '${inputName}', expecting string of length ${length} but only ` +
      `${available} bytes available`,
  );
}

function tooMany(inputName: string, expected: number): StatusError {
  return invalidArgument(
    `unexpected number of string elements ${expected + 1} for inference input '${inputName}', ` +
      `expecting ${expected}`,
  );
}
