// The headers of gRPC over HTTP/2: what a call's request headers say, and the header blocks of its answer. Blocks that
// repeat are encoded once.

import { encodeHeaderBlock } from './http2/hpack-encoder.ts';
import type { HeaderPair } from './http2/http2-types.ts';

export type GrpcEncoding = 'identity' | 'gzip' | 'deflate';

export interface CallHeaders {
  readonly path: string;
  readonly method: string;
  readonly contentType: string;
  /** Of the client's messages, as sent. */
  readonly encoding: string;
  readonly acceptEncoding: string;
  /** Infinity when the client waits for ever. */
  readonly timeoutMs: number;
  readonly pairs: readonly HeaderPair[];
}

/** Equal requests of one connection share their header array, and so what was read from it. */
const remembered = new WeakMap<readonly HeaderPair[], CallHeaders>();

export function readCallHeaders(pairs: readonly HeaderPair[]): CallHeaders {
  const known = remembered.get(pairs);
  if (known !== undefined) return known;
  const find = (name: string) => findHeader(pairs, name) ?? '';
  const headers: CallHeaders = {
    path: find(':path'),
    method: find(':method'),
    contentType: find('content-type'),
    encoding: find('grpc-encoding') || 'identity',
    acceptEncoding: find('grpc-accept-encoding'),
    timeoutMs: parseTimeout(find('grpc-timeout')),
    pairs,
  };
  remembered.set(pairs, headers);
  return headers;
}

export function findHeader(pairs: readonly HeaderPair[], name: string): string | undefined {
  for (const [key, value] of pairs) if (key === name) return value;
  return undefined;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** At most eight digits and a unit; anything else is no timeout, as other servers have it. */
function parseTimeout(text: string): number {
  const match = /^([0-9]{1,8})([HMSmun])$/.exec(text);
  return match === null ? Number.POSITIVE_INFINITY : Number(match[1]) * UNIT_MS[match[2]!]!;
}

const BASE_HEAD: readonly HeaderPair[] = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
  ['grpc-accept-encoding', 'identity, deflate, gzip'],
];

const HEADS: Readonly<Record<GrpcEncoding, Buffer>> = {
  identity: encodeHeaderBlock(BASE_HEAD),
  gzip: encodeHeaderBlock([...BASE_HEAD, ['grpc-encoding', 'gzip']]),
  deflate: encodeHeaderBlock([...BASE_HEAD, ['grpc-encoding', 'deflate']]),
};

export const OK_TRAILERS = encodeHeaderBlock([['grpc-status', '0']]);

/** For requests that are no gRPC at all. */
export const NOT_GRPC_HEAD = encodeHeaderBlock([[':status', '415']]);

export function headBlock(encoding: GrpcEncoding): Buffer {
  return HEADS[encoding];
}

/** With `isOnly` the whole answer: nothing was sent before. */
export function statusBlock(status: { code: number; message: string }, isOnly: boolean): Buffer {
  const pairs: HeaderPair[] = isOnly
    ? [
        [':status', '200'],
        ['content-type', 'application/grpc'],
      ]
    : [];
  pairs.push(['grpc-status', String(status.code)]);
  if (status.message !== '') pairs.push(['grpc-message', percentEncode(status.message)]);
  return encodeHeaderBlock(pairs);
}

/**
 * Printable ASCII stays; everything else, and the percent sign, becomes %XX byte by byte. So do blanks at the ends,
 * which a header value must not have and some clients refuse.
 */
function percentEncode(text: string): string {
  if (/^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(text)) return text;
  let encoded = '';
  for (const byte of Buffer.from(text)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded.replace(/^ | $/g, '%20');
}

/** As gRPC's core picks an algorithm for a level from those the client takes. */
export function encodingFor(level: 'none' | 'low' | 'medium' | 'high', acceptEncoding: string): GrpcEncoding {
  if (level === 'none' || acceptEncoding === '') return 'identity';
  const accepted = acceptEncoding.split(',').map((name) => name.trim());
  const usable = (['gzip', 'deflate'] as const).filter((name) => accepted.includes(name));
  if (usable.length === 0) return 'identity';
  const index = { low: 0, medium: Math.floor(usable.length / 2), high: usable.length - 1 }[level];
  return usable[index]!;
}
