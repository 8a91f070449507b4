// Request bodies that the client compressed. Runs on zlib's threads, never on the event loop.

import { createUnzip } from 'node:zlib';
import { invalidArgument, unsupported } from '../../domain/status.ts';
import type { Body } from './body-reader.ts';

/** Output comes in pieces of this size. */
const UNZIP_PIECE_BYTES = 64 * 1024;

export const UNSUPPORTED_COMPRESSION = 'Unsupported compression type';

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
