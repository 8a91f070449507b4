// Compressed gRPC messages, both ways, on zlib's threads. How many are unpacked at once is bounded, since a small
// message can become a large one.

import { promisify } from 'node:util';
import { deflate, gunzip, gzip, inflate } from 'node:zlib';
import { GRPC_MESSAGE_BYTES_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { GrpcEncoding } from './grpc-headers.ts';
import { MessageTooLarge } from './message-reader.ts';

const gunzipAsync = promisify(gunzip);
const inflateAsync = promisify(inflate);
const gzipAsync = promisify(gzip);
const deflateAsync = promisify(deflate);

const UNPACKING_MAX = 4;
const unpacking = new Semaphore(UNPACKING_MAX);

export function isKnownEncoding(name: string): name is GrpcEncoding {
  return name === 'identity' || name === 'gzip' || name === 'deflate';
}

export function unpack(
  pieces: readonly Buffer[],
  encoding: GrpcEncoding,
  bytesMax = GRPC_MESSAGE_BYTES_MAX,
): Promise<Buffer> {
  return unpacking.run(async () => {
    const bytes = Buffer.concat(pieces);
    const run = encoding === 'gzip' ? gunzipAsync : inflateAsync;
    try {
      return await run(bytes, { maxOutputLength: bytesMax });
    } catch (thrown) {
      const isTooLarge = (thrown as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (isTooLarge) throw new MessageTooLarge(bytesMax + 1);
      throw internal('Failed to decompress the message');
    }
  });
}

export function pack(parts: readonly Buffer[], encoding: 'gzip' | 'deflate'): Promise<Buffer> {
  const run = encoding === 'gzip' ? gzipAsync : deflateAsync;
  return run(Buffer.concat(parts));
}
