// Fetches one file into a partial file, across lost connections and across runs, and checks its length and checksum.
// Called by pull.ts for each file of a model; the file gets its name elsewhere, when all are there.

import type { RepositoryFile } from './choose-files.ts';
import { causeText, type GetAnswer, type GetOptions, get, throwIfPassing } from './http-get.ts';
import { fileRefusal } from './hub.ts';
import { PartialFile, type PartialNote } from './partial-file.ts';
import { PassingError, PullError } from './pull-error.ts';
import { type RetryRules, withRetries } from './with-retries.ts';

export interface DownloadRequest {
  readonly url: URL;
  /** Where the bytes are gathered. */
  readonly path: string;
  /** Undefined when only the server knows. */
  readonly byteLength: number | undefined;
  readonly sha256: string | undefined;
  readonly token: string | undefined;
  readonly tokenOrigin: string;
  readonly retries: RetryRules;
  /** What the repository has, for the error about a file that it has not. */
  readonly files?: readonly RepositoryFile[];
  onProgress(doneByteLength: number, totalByteLength: number | undefined): void;
}

export interface Downloaded {
  readonly byteLength: number;
  readonly sha256: string;
  /** Whether the checksum was compared with one from the hub or the user. */
  readonly isVerified: boolean;
}

/** A connection that brings nothing for so long is lost. */
const SILENCE_MS_MAX = 60_000;

/** Throws a PullError, or what the signal aborts with; the partial file is then kept, unless it is known to be wrong. */
export async function download(request: DownloadRequest): Promise<Downloaded> {
  const partial = await PartialFile.open(request.path, { url: request.url.href, sha256: request.sha256 });
  try {
    let answered: Expected = { byteLength: request.byteLength, sha256: request.sha256 };
    if (request.byteLength === undefined || partial.byteLength < request.byteLength) {
      answered = await withRetries(
        request.retries,
        () => fetchRest(request, partial),
        () => partial.byteLength,
      );
    }
    await partial.sync();
    return await check(request, partial, answered);
  } finally {
    await partial.close();
  }
}

/** What the server says of the whole file. */
interface Expected {
  readonly byteLength: number | undefined;
  readonly sha256: string | undefined;
}

async function fetchRest(request: DownloadRequest, partial: PartialFile): Promise<Expected> {
  const answer = await get(request.url, await optionsOf(request, partial));
  const { response } = answer;
  await throwIfPassing(response, request.url.host);
  if (response.status === 416 && partial.byteLength > 0) {
    // Nothing follows what we have. Its length and checksum tell whether that is the whole.
    await response.body?.cancel();
    const total = totalOf(response);
    if (total === partial.byteLength) return { byteLength: total, sha256: request.sha256 };
    await partial.restart();
    throw new PassingError('the file has changed on the server; it is fetched anew', { waitMs: 0 });
  }
  if (response.status !== 200 && response.status !== 206) {
    await response.body?.cancel();
    throw fileRefusal(response.status, {
      url: request.url,
      hasToken: request.token !== undefined,
      ...(request.files === undefined ? {} : { files: request.files }),
    });
  }
  if (response.status === 200 || startOf(response) !== partial.byteLength) {
    if (response.status === 206) {
      await response.body?.cancel();
      await partial.restart();
      throw new PassingError('the server sent another part than was asked for', { waitMs: 0 });
    }
    if (partial.byteLength > 0) await partial.restart();
  }
  const expected = expectedOf(request, answer);
  await partial.writeNote(noteOf(request, response));
  await readBody(response, { request, partial, byteLength: expected.byteLength });
  return expected;
}

async function optionsOf(request: DownloadRequest, partial: PartialFile): Promise<GetOptions> {
  const { token, tokenOrigin, retries } = request;
  const headers: Record<string, string> = {};
  if (partial.byteLength > 0) {
    headers.range = `bytes=${partial.byteLength}-`;
    const note = await partial.readNote();
    // With a checksum any server that has the bytes will do, and stores behind a hub differ in their tags.
    if (request.sha256 === undefined && note?.etag !== undefined) headers['if-range'] = note.etag;
  }
  return { headers, token, tokenOrigin, signal: retries.signal };
}

function noteOf(request: DownloadRequest, response: Response): PartialNote {
  const etag = response.headers.get('etag') ?? undefined;
  return {
    url: request.url.href,
    etag: etag?.startsWith('"') ? etag : undefined,
    sha256: request.sha256,
  };
}

function expectedOf(request: DownloadRequest, { response, firstHeaders }: GetAnswer): Expected {
  const linked = (firstHeaders.get('x-linked-etag') ?? '').replaceAll('"', '');
  const sha256 = request.sha256 ?? (/^[0-9a-f]{64}$/.test(linked) ? linked : undefined);
  return { byteLength: totalOf(response) ?? request.byteLength, sha256 };
}

/** The length of the whole file; undefined when the answer does not tell. */
function totalOf(response: Response): number | undefined {
  const range = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1];
  const text = response.status === 200 ? response.headers.get('content-length') : range;
  return text === null || text === undefined ? undefined : Number(text);
}

function startOf(response: Response): number | undefined {
  const start = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1];
  return start === undefined ? undefined : Number(start);
}

async function readBody(
  response: Response,
  to: { request: DownloadRequest; partial: PartialFile; byteLength: number | undefined },
): Promise<void> {
  const { request, partial, byteLength } = to;
  if (response.body === null) throw new PassingError(`${request.url.host} sent no body`);
  const reader = response.body.getReader();
  const { signal } = request.retries;
  const stop = () => void reader.cancel().catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  signal.addEventListener('abort', stop, { once: true });
  try {
    for (;;) {
      timer = setTimeout(stop, SILENCE_MS_MAX);
      const { done, value } = await reader.read();
      clearTimeout(timer);
      signal.throwIfAborted();
      if (done) break;
      await partial.append(value);
      request.onProgress(partial.byteLength, byteLength);
    }
  } catch (thrown) {
    signal.throwIfAborted();
    if (isDiskError(thrown)) throw new PullError(`${request.path} cannot be written: ${causeText(thrown)}`);
    throw new PassingError(`the connection to ${request.url.host} was lost: ${causeText(thrown)}`, {
      cause: thrown,
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
  if (byteLength !== undefined && partial.byteLength < byteLength) {
    throw new PassingError(
      `the connection to ${request.url.host} ended after ${partial.byteLength} of ${byteLength} bytes`,
    );
  }
}

function isDiskError(thrown: unknown): boolean {
  return thrown instanceof Error && 'syscall' in thrown && thrown.syscall === 'write';
}

async function check(
  request: DownloadRequest,
  partial: PartialFile,
  answered: Expected,
): Promise<Downloaded> {
  const { byteLength } = partial;
  const name = `${request.url.origin}${request.url.pathname}`;
  const wanted = request.byteLength ?? answered.byteLength;
  if (wanted !== undefined && byteLength !== wanted) {
    await PartialFile.remove(partial.path);
    throw new PullError(
      `${name} has ${byteLength} bytes and should have ${wanted}; what was fetched is removed`,
    );
  }
  const sha256 = partial.sha256();
  const right = request.sha256 ?? answered.sha256;
  if (right !== undefined && sha256 !== right) {
    await PartialFile.remove(partial.path);
    throw new PullError(
      `${name} has the wrong checksum; what was fetched is removed\n  sha256 ${sha256}\n  should be ${right}`,
    );
  }
  return { byteLength, sha256, isVerified: right !== undefined };
}
