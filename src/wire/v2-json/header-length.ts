// Inference-Header-Content-Length: how many leading bytes of the body are JSON.
// Read as Triton 2.51 does, with C's atol: leading digits count, text without any is 0, a raw request.

import { invalidArgument } from '../../domain/status.ts';

export function parseHeaderLength(headerValue: string | undefined, bodyLength: number): number {
  if (headerValue === undefined) return bodyLength;
  const digits = /^[ \t\n\v\f\r]*([+-]?\d+)/.exec(headerValue)?.[1];
  const length = digits === undefined ? 0 : Number(digits);
  if (length < 0 || length > bodyLength) {
    throw invalidArgument(`inference header size should be in range (0, ${bodyLength}), got: ${headerValue}`);
  }
  return length;
}
