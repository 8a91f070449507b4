// A repository of a Hugging Face hub: which commit a revision is, which files that commit has, and where each is
// fetched. Called by pull.ts. Everything after the first question is asked of the commit, so that nothing moves meanwhile.

import type { RepositoryFile } from './choose-files.ts';
import { listText } from './choose-files.ts';
import { causeText, type GetOptions, get, throwIfPassing } from './http-get.ts';
import { PassingError, PullError } from './pull-error.ts';
import { type RetryRules, withRetries } from './with-retries.ts';

export interface HubAccess {
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly token: string | undefined;
  readonly retries: RetryRules;
}

/** A listing has 1,000 entries a page; more pages than this is no repository of models. */
const PAGES_MAX = 100;

/** The commit of a branch, tag or commit. */
export async function findCommit(hub: HubAccess, repository: string, revision: string): Promise<string> {
  const path = `/api/models/${repository}/revision/${encodeURIComponent(revision)}`;
  const answer = await getJson(hub, new URL(hub.endpoint + path));
  if (answer.status === 404) {
    const repo = await getJson(hub, new URL(`${hub.endpoint}/api/models/${repository}`));
    if (repo.status === 200) {
      throw new PullError(`${repository} has no revision '${revision}'`);
    }
    throw new PullError(
      `${hub.endpoint} has no model repository '${repository}'; if it is private, set HF_TOKEN to a token that may read it`,
    );
  }
  const commit = (answer.body as { sha?: unknown } | undefined)?.sha;
  if (answer.status !== 200 || typeof commit !== 'string') throw refusal(hub, repository, answer.status);
  return commit;
}

export async function listFiles(
  hub: HubAccess,
  repository: string,
  commit: string,
): Promise<RepositoryFile[]> {
  const files: RepositoryFile[] = [];
  let next: URL | undefined = new URL(
    `${hub.endpoint}/api/models/${repository}/tree/${encodeURIComponent(commit)}?recursive=true`,
  );
  for (let page = 0; next !== undefined && page < PAGES_MAX; page++) {
    const answer = await getJson(hub, next);
    if (answer.status !== 200 || !Array.isArray(answer.body)) throw refusal(hub, repository, answer.status);
    files.push(...answer.body.flatMap(parseEntry));
    const link = /<([^>]+)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
    next = link === undefined ? undefined : new URL(link, next);
  }
  return files;
}

export function fileUrl(hub: HubAccess, at: { repository: string; commit: string; path: string }): URL {
  const path = at.path.split('/').map(encodeURIComponent).join('/');
  return new URL(`${hub.endpoint}/${at.repository}/resolve/${encodeURIComponent(at.commit)}/${path}`);
}

/** For a file that the server refuses, with what there is when it does not exist. */
export function fileRefusal(
  status: number,
  at: { url: URL; hasToken: boolean; files?: readonly RepositoryFile[] },
): PullError {
  const place = `${at.url.origin}${at.url.pathname}`;
  if (status === 401 || status === 403) {
    const advice = at.hasToken
      ? 'the token may not read it: accept the licence on the page of the repository, or use another token'
      : 'set HF_TOKEN, or accept the licence on the page of the repository';
    return new PullError(`${place} is not open (${status}): ${advice}`);
  }
  if (status === 404) {
    const known = at.files === undefined ? '' : `. The repository has:\n${listText(at.files)}`;
    return new PullError(`${place} does not exist${known}`);
  }
  return new PullError(`${place}: the server answered ${status}`);
}

function parseEntry(entry: unknown): RepositoryFile[] {
  const { type, path, size, lfs } = entry as {
    type?: unknown;
    path?: unknown;
    size?: unknown;
    lfs?: { oid?: unknown; size?: unknown };
  };
  if (type !== 'file' || typeof path !== 'string' || typeof size !== 'number') return [];
  const oid = String(lfs?.oid ?? '').replace(/^sha256:/, '');
  const byteLength = typeof lfs?.size === 'number' ? lfs.size : size;
  return [{ path, byteLength, sha256: /^[0-9a-f]{64}$/.test(oid) ? oid : undefined }];
}

interface JsonAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined when the answer is no success. */
  readonly body: unknown;
}

function getJson(hub: HubAccess, url: URL): Promise<JsonAnswer> {
  const options: GetOptions = {
    token: hub.token,
    tokenOrigin: new URL(hub.endpoint).origin,
    signal: hub.retries.signal,
  };
  return withRetries(hub.retries, async () => {
    const { response } = await get(url, options);
    await throwIfPassing(response, url.host);
    const { status, headers } = response;
    if (status !== 200) {
      await response.body?.cancel();
      return { status, headers, body: undefined };
    }
    const text = await response.text().catch((thrown: unknown) => {
      throw new PassingError(`${url.host}: ${causeText(thrown)}`, { cause: thrown });
    });
    try {
      return { status, headers, body: JSON.parse(text) as unknown };
    } catch {
      throw new PullError(`${url.origin} does not answer as a Hugging Face hub does; is HF_ENDPOINT right?`);
    }
  });
}

function refusal(hub: HubAccess, repository: string, status: number): PullError {
  // The public hub answers so for repositories that do not exist, too.
  if (status === 401 && hub.token === undefined) {
    return new PullError(
      `${hub.endpoint}/${repository} is not open (401): there is no such repository, or it is private or gated; set HF_TOKEN or accept the licence on its page`,
    );
  }
  return fileRefusal(status, {
    url: new URL(`${hub.endpoint}/${repository}`),
    hasToken: hub.token !== undefined,
  });
}
