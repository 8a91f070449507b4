// Walks a request body that arrived in chunks and cuts it into views: JSON head first, then tensor after tensor.
// Nothing is copied, but for a JSON head that lies across chunks. Used by decode-infer-request.ts alone.

import type { TensorBytes } from '../../domain/tensor.ts';

const NO_BYTES: TensorBytes = [];

export interface BodyCursor {
  readonly chunks: readonly Buffer[];
  /** Bytes not yet taken. */
  remaining: number;
  chunkIndex: number;
  /** Offset inside the current chunk. */
  offset: number;
}

export function createBodyCursor(chunks: readonly Buffer[], byteLength: number): BodyCursor {
  return { chunks, remaining: byteLength, chunkIndex: 0, offset: 0 };
}

/** The next bytes as views; the caller has checked that as many remain. */
export function takeViews(cursor: BodyCursor, byteLength: number): TensorBytes {
  if (byteLength === 0) return NO_BYTES;
  cursor.remaining -= byteLength;
  const chunk = cursor.chunks[cursor.chunkIndex]!;
  const after = cursor.offset + byteLength;
  if (after <= chunk.length) {
    const view = chunk.subarray(cursor.offset, after);
    advance(cursor, after);
    return [view];
  }
  return takeAcrossChunks(cursor, byteLength);
}

function takeAcrossChunks(cursor: BodyCursor, byteLength: number): TensorBytes {
  const views: Buffer[] = [];
  let missing = byteLength;
  while (missing > 0) {
    const chunk = cursor.chunks[cursor.chunkIndex]!;
    const after = Math.min(cursor.offset + missing, chunk.length);
    if (after > cursor.offset) views.push(chunk.subarray(cursor.offset, after));
    missing -= after - cursor.offset;
    advance(cursor, after);
  }
  return views;
}

function advance(cursor: BodyCursor, offset: number): void {
  if (offset < cursor.chunks[cursor.chunkIndex]!.length) {
    cursor.offset = offset;
  } else {
    cursor.chunkIndex += 1;
    cursor.offset = 0;
  }
}

export function takeContiguous(cursor: BodyCursor, byteLength: number): Buffer {
  const views = takeViews(cursor, byteLength);
  return views.length === 1 ? views[0]! : Buffer.concat(views);
}
