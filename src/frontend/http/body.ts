// Reads request bodies: as the list of pieces in which they came, within bounds, decompressed where the client
// compressed them. Compression runs on zlib's threads, never on the event loop.

import type { IncomingMessage } from 'node:http';
import { createUnzip } from 'node:zlib';
import { HTTP_BODY_BYTES_MAX, HTTP_CHUNKS_MAX } from '../../domain/limits.ts';
import { invalidArgument, type StatusError, unsupported } from '../../domain/status.ts';
import { headerOf } from './request-headers.ts';

export interface Body {
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;
}

/** Output comes in pieces of this size. */
const UNZIP_PIECE_BYTES = 64 * 1024;

export const UNSUPPORTED_COMPRESSION = 'Unsupported compression type';

/** Calls exactly one of `onBody` and `onError`, or neither when the client goes away. */
export function readBody(
  req: IncomingMessage,
  onBody: (body: Body) => void,
  onError: (error: StatusError) => void,
): void {
  const pieces: Buffer[] = [];
  let byteLength = 0;
  let isDone = false;
  const fail = (error: StatusError): void => {
    if (isDone) return;
    isDone = true;
    onError(error);
  };
  if (Number(headerOf(req, 'content-length') ?? 0) > HTTP_BODY_BYTES_MAX) {
    fail(tooLarge());
    return;
  }
  req.on('data', (piece: Buffer) => {
    if (isDone) return;
    byteLength += piece.length;
    if (byteLength > HTTP_BODY_BYTES_MAX) return fail(tooLarge());
    pieces.push(piece);
    if (pieces.length > HTTP_CHUNKS_MAX && headerOf(req, 'content-length') === undefined) {
      fail(
        invalidArgument(
          `Chunked request body exceeds maximum of ${HTTP_CHUNKS_MAX} non-empty chunks. Send fewer or larger HTTP chunks.`,
        ),
      );
    }
  });
  req.on('end', () => {
    if (isDone) return;
    isDone = true;
    onBody({ pieces, byteLength });
  });
}

/** For endpoints whose body is a small JSON document. */
export function readText(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    readBody(req, (body) => resolve(Buffer.concat(body.pieces)), reject);
  });
}

function tooLarge(): StatusError {
  return invalidArgument(`request body is larger than the maximum of ${HTTP_BODY_BYTES_MAX} bytes`);
}

/** True when the body must be decompressed; throws for an encoding that Triton does not know either. */
export function isCompressed(encoding: string | undefined): boolean {
  if (encoding === undefined || encoding === 'identity') return false;
  if (encoding === 'gzip' || encoding === 'deflate') return true;
  throw unsupported(UNSUPPORTED_COMPRESSION);
}

/** zlib tells gzip from deflate by itself, so either header takes either format. */
export function decompress(body: Body, bytesMax: number): Promise<Body> {
  if (body.byteLength === 0) throw invalidArgument('nothing to be decompressed');
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let byteLength = 0;
    const unzip = createUnzip({ chunkSize: UNZIP_PIECE_BYTES });
    unzip.on('data', (piece: Buffer) => {
      byteLength += piece.length;
      pieces.push(piece);
      if (byteLength <= bytesMax) return;
      unzip.destroy();
      reject(
        invalidArgument(
          `Decompressed data size exceeds the maximum allowed value of ${bytesMax} bytes. Use --http-max-input-size to increase the limit.`,
        ),
      );
    });
    unzip.on('end', () => resolve({ pieces, byteLength }));
    // Triton treats a body that is not what its header says as an empty one.
    unzip.on('error', () => resolve({ pieces: [], byteLength: 0 }));
    for (const piece of body.pieces) unzip.write(piece);
    unzip.end();
  });
}
