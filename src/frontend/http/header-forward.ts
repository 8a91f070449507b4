// --http-header-forward-pattern: request headers that match become string parameters of the request.

import type { Parameters, ParameterValue } from '../../domain/request.ts';
import { invalidArgument } from '../../domain/status.ts';
import { isReservedHeader } from '../header-forward.ts';

/** Names keep the case in which the client wrote them; a header wins over a parameter of the same name. */
export function forwardHeaders(
  rawHeaders: readonly string[],
  pattern: RegExp,
  given: Parameters | undefined,
): Parameters | undefined {
  let forwarded: Map<string, ParameterValue> | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!pattern.test(name)) continue;
    if (isReservedHeader(name)) {
      throw invalidArgument(`Header '${name}' is reserved for Triton usage and cannot be forwarded.`);
    }
    forwarded ??= new Map(given);
    forwarded.set(name, rawHeaders[i + 1]!);
  }
  return forwarded ?? given;
}
