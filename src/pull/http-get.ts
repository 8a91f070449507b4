// One GET over Node's fetch: redirects followed by hand, so that a token never leaves the host it is for, and failures
// sorted into those that another try may mend and those that it may not. Called by hub.ts and download.ts.

import { PassingError, PullError } from './pull-error.ts';

export interface GetOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent to `tokenOrigin` and to no other. */
  readonly token: string | undefined;
  readonly tokenOrigin: string;
  readonly signal: AbortSignal;
}

export interface GetAnswer {
  readonly response: Response;
  /** Of the first answer: the hub describes the file there, and then sends us to its store. */
  readonly firstHeaders: Headers;
}

const REDIRECTS_MAX = 10;
/** For the answer to begin; a hub that says nothing for so long will not. */
const ANSWER_MS_MAX = 60_000;
const RETRY_AFTER_MS_MAX = 120_000;

/** Resolves with any status but a redirect; throws a PassingError when there was no answer. */
export async function get(url: URL, options: GetOptions): Promise<GetAnswer> {
  let target = url;
  let firstHeaders: Headers | undefined;
  for (let count = 0; count <= REDIRECTS_MAX; count++) {
    const response = await fetchOnce(target, options);
    firstHeaders ??= response.headers;
    const location = response.headers.get('location');
    if (response.status < 300 || response.status > 399 || response.status === 304 || location === null) {
      return { response, firstHeaders };
    }
    await response.body?.cancel();
    target = followed(target, location);
  }
  throw new PullError(`${url.origin} redirects without end`);
}

function followed(from: URL, location: string): URL {
  const to = new URL(location, from);
  if (to.protocol !== 'https:' && to.protocol !== 'http:') {
    throw new PullError(`${from.origin} redirects to ${to.protocol}, which is not followed`);
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new PullError(`${from.origin} redirects from https to http, which is not followed`);
  }
  return to;
}

async function fetchOnce(url: URL, options: GetOptions): Promise<Response> {
  const headers: Record<string, string> = {
    'user-agent': 'nereid-pull',
    // A compressed body would have another length and other ranges.
    'accept-encoding': 'identity',
    ...options.headers,
  };
  if (options.token !== undefined && url.origin === options.tokenOrigin) {
    headers.authorization = `Bearer ${options.token}`;
  }
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), ANSWER_MS_MAX);
  const onAbort = () => limit.abort();
  options.signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await fetch(url, { headers, redirect: 'manual', signal: limit.signal });
  } catch (thrown) {
    options.signal.throwIfAborted();
    throw new PassingError(`${url.host} cannot be reached: ${causeText(thrown)}`, { cause: thrown });
  } finally {
    clearTimeout(timer);
    // The body is guarded by who reads it.
    options.signal.removeEventListener('abort', onAbort);
  }
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
export function causeText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.name === 'AbortError') return `no answer within ${ANSWER_MS_MAX / 1000} s`;
  return thrown.cause instanceof Error ? causeText(thrown.cause) : thrown.message;
}

/** For any status that is no success: throws a PassingError for those that pass, else returns. */
export async function throwIfPassing(response: Response, what: string): Promise<void> {
  const { status } = response;
  if (status < 500 && status !== 429 && status !== 408) return;
  await response.body?.cancel();
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const waitMs = Number.isFinite(seconds) ? Math.min(seconds * 1000, RETRY_AFTER_MS_MAX) : undefined;
  throw new PassingError(`${what}: the server answered ${status}`, { waitMs });
}
