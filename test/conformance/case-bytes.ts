// Bytes of the cases, sent and received: generated fills, and the short or digested form in which answers hold
// binary data. Used by the HTTP and the gRPC exchange.
import { createHash } from 'node:crypto';
import type { JsonObject } from './json.ts';

/** Binary data above this size is recorded as a digest. */
const KEPT_BYTES_MAX = 4096;

export interface Fill {
  /** A numpy type name, such as "<f4". */
  readonly dtype: string;
  readonly count: number;
}

const FILLS: Readonly<Record<string, (values: number[]) => ArrayBufferView>> = {
  u1: (values) => Uint8Array.from(values),
  '<i4': (values) => Int32Array.from(values),
  '<i8': (values) => BigInt64Array.from(values.map(BigInt)),
  '<f4': (values) => Float32Array.from(values),
};

/** 0 to 250, again and again. */
export function fillBytes({ dtype, count }: Fill): Buffer<ArrayBuffer> {
  const view = FILLS[dtype]?.(Array.from({ length: count }, (_, i) => i % 251));
  if (view === undefined) throw new Error(`no fill of ${dtype}`);
  return Buffer.from(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
}

export function bytesRecord(key: 'binary' | 'body', data: Buffer): JsonObject {
  if (data.length <= KEPT_BYTES_MAX) return { [`${key}_b64`]: data.toString('base64') };
  const { sha256, size } = digest(data);
  return { [`${key}_sha256`]: sha256, [`${key}_size`]: size };
}

/** A bytes field of a protobuf message. */
export function bytesField(data: Buffer): string | JsonObject {
  return data.length <= KEPT_BYTES_MAX ? data.toString('base64') : digest(data);
}

function digest(data: Buffer): { sha256: string; size: bigint } {
  return { sha256: createHash('sha256').update(data).digest('hex'), size: BigInt(data.length) };
}
