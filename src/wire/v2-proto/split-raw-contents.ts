// A ModelInferRequest that arrived in several pieces → its raw tensors as views on the pieces, and everything else
// as one small buffer that the decoder reads. So only the head of a large message is copied, never a tensor.

import type { TensorBytes } from '../../domain/tensor.ts';
import { ProtoError } from './proto-error.ts';
import { FIXED32, FIXED64, LENGTH, VARINT } from './proto-reader.ts';
import { ProtoWriter } from './proto-writer.ts';

export interface SplitRequest {
  /** The message without its raw tensors. */
  readonly head: Buffer;
  readonly rawContents: TensorBytes[];
}

const RAW_INPUT_CONTENTS = 7;
const VARINT_BYTES_MAX = 10;

/** Undefined for a message with groups, which no client of ours sends: it is simply joined then. */
export function splitRawContents(pieces: readonly Buffer[]): SplitRequest | undefined {
  const cursor = new PieceCursor(pieces);
  const head = new ProtoWriter();
  const rawContents: TensorBytes[] = [];
  while (cursor.remaining > 0) {
    const tag = cursor.varint();
    switch (tag & 7) {
      case VARINT:
        head.uint32(tag);
        cursor.copyVarint(head);
        break;
      case FIXED64:
        head.uint32(tag);
        for (const view of cursor.take(8)) head.raw(view);
        break;
      case FIXED32:
        head.uint32(tag);
        for (const view of cursor.take(4)) head.raw(view);
        break;
      case LENGTH: {
        const length = cursor.varint();
        if (tag >>> 3 === RAW_INPUT_CONTENTS) {
          rawContents.push(cursor.take(length));
          break;
        }
        head.uint32(tag);
        head.uint32(length);
        for (const view of cursor.take(length)) head.raw(view);
        break;
      }
      default:
        return undefined;
    }
  }
  return { head: head.finish(), rawContents };
}

/** A position in a list of buffers. */
class PieceCursor {
  remaining = 0;
  readonly #pieces: readonly Buffer[];
  #index = 0;
  #at = 0;

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces;
    for (const piece of pieces) this.remaining += piece.length;
  }

  byte(): number {
    if (this.remaining === 0) throw new ProtoError('a message ends inside a varint');
    while (this.#at === this.#pieces[this.#index]!.length) {
      this.#index += 1;
      this.#at = 0;
    }
    this.remaining -= 1;
    return this.#pieces[this.#index]![this.#at++]!;
  }

  /** A tag or a length: 32 bits in at most five bytes. */
  varint(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value >= 2 ** 32) break;
        return value;
      }
    }
    throw new ProtoError('a tag or a length is too large');
  }

  copyVarint(target: ProtoWriter): void {
    const bytes: number[] = [];
    do {
      if (bytes.length === VARINT_BYTES_MAX) throw new ProtoError('a varint is too long');
      bytes.push(this.byte());
    } while (bytes.at(-1)! >= 0x80);
    target.raw(Uint8Array.from(bytes));
  }

  /** The next bytes as views, one for each piece they lie in. */
  take(length: number): Buffer[] {
    if (length > this.remaining) throw new ProtoError('a field is longer than its message');
    this.remaining -= length;
    const views: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      const piece = this.#pieces[this.#index]!;
      const view = piece.subarray(this.#at, this.#at + missing);
      this.#at += view.length;
      missing -= view.length;
      if (view.length > 0) views.push(view);
      if (this.#at === piece.length && missing > 0) {
        this.#index += 1;
        this.#at = 0;
      }
    }
    return views;
  }
}
