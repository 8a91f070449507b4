// Looks a header up in the list node received, without building node's object of all headers: the hot path
// needs three of them, and the object costs more than decoding the request.

import type { IncomingMessage } from 'node:http';

/** `name` in lower case. The first one counts; undefined when there is none. */
export function headerOf(req: IncomingMessage, name: string): string | undefined {
  const { rawHeaders } = req;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i]!;
    if (candidate.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
