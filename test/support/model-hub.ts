// A Hugging Face hub on this machine, for the tests of `nereid pull`: revisions and file lists on one port, the files on
// another, as the hub redirects to its store. It can drop connections, answer with errors and keep what it was asked.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HubFile {
  readonly content: Buffer;
  /** What the listing says; the right one unless told. Undefined: the file is in git, without one. */
  readonly sha256?: string | undefined;
}

export interface Asked {
  readonly place: 'hub' | 'store';
  readonly path: string;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  readonly authorization: string | undefined;
}

export interface ModelHub {
  readonly endpoint: string;
  readonly storeUrl: string;
  readonly asked: Asked[];
  /** Repository → path → file. */
  readonly repositories: Map<string, Map<string, HubFile>>;
  /** The store ends that many connections after so many bytes each, when the client has taken them: what is under way
   * when a connection ends may be lost. */
  drops: { count: number; afterByteLength: number; isTaken?: () => boolean };
  /** Statuses that the store answers first, one for each request. */
  statuses: number[];
  /** Repositories that want this token. */
  gated: Map<string, string>;
  /** Bytes of a body per 10 ms; the whole at once when undefined. */
  paceByteLength: number | undefined;
  /** Changes the ETag of every file, as a new upload would. */
  etagSuffix: string;
  stop(): Promise<void>;
}

export const COMMIT = '0123456789abcdef0123456789abcdef01234567';

export function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export async function startModelHub(): Promise<ModelHub> {
  const hubServer = createServer((request, response) => onHub(hub, request, response));
  const storeServer = createServer((request, response) => void onStore(hub, request, response));
  const [endpoint, storeUrl] = (await Promise.all([listen(hubServer), listen(storeServer)])) as [
    string,
    string,
  ];
  const hub: ModelHub = {
    endpoint,
    storeUrl,
    asked: [],
    repositories: new Map(),
    drops: { count: 0, afterByteLength: 0 },
    statuses: [],
    gated: new Map(),
    paceByteLength: undefined,
    etagSuffix: '',
    stop: async () => {
      for (const server of [hubServer, storeServer]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
  return hub;
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function note(hub: ModelHub, place: Asked['place'], request: IncomingMessage): string {
  const { range, authorization } = request.headers;
  const path = decodeURIComponent(request.url ?? '');
  hub.asked.push({
    place,
    path,
    range,
    ifRange: request.headers['if-range'] as string | undefined,
    authorization,
  });
  return path;
}

function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function onHub(hub: ModelHub, request: IncomingMessage, response: ServerResponse): void {
  const path = note(hub, 'hub', request);
  const [, repository = '', view = '', rest = ''] =
    /^(?:\/api\/models)?\/([^/]+\/[^/?]+)\/?(revision|tree|resolve)?\/?(.*)$/.exec(path) ?? [];
  const files = hub.repositories.get(repository);
  if (files === undefined) {
    answer(response, 404, { error: 'Repository not found' });
    return;
  }
  const { authorization } = request.headers;
  const token = hub.gated.get(repository);
  if (token !== undefined && authorization !== `Bearer ${token}`) {
    answer(response, authorization === undefined ? 401 : 403, { error: 'Access is restricted' });
  } else if (view === '' || (view === 'revision' && rest === 'main')) {
    answer(response, 200, { sha: COMMIT });
  } else if (view === 'revision') {
    answer(response, 404, { error: `Invalid rev id: ${rest}` });
  } else if (view === 'tree') {
    tree(hub, response, { repository, page: Number(/page=(\d+)/.exec(rest)?.[1] ?? 0) });
  } else {
    redirect(hub, response, { repository, name: rest.slice(rest.indexOf('/') + 1) });
  }
}

function redirect(hub: ModelHub, response: ServerResponse, at: { repository: string; name: string }): void {
  const file = hub.repositories.get(at.repository)?.get(at.name);
  if (file === undefined) {
    answer(response, 404, { error: 'Entry not found' });
    return;
  }
  const etag = { 'x-linked-etag': `"${'sha256' in file ? file.sha256 : sha256Of(file.content)}"` };
  answer(response, 302, {}, { ...etag, location: `${hub.storeUrl}/${at.repository}/${at.name}` });
}

/** Two entries a page, and a folder among them. */
function tree(hub: ModelHub, response: ServerResponse, at: { repository: string; page: number }): void {
  const entries: unknown[] = [{ type: 'directory', path: 'onnx', size: 0, oid: 'x' }];
  for (const [path, file] of hub.repositories.get(at.repository) ?? []) {
    const oid = 'sha256' in file ? file.sha256 : sha256Of(file.content);
    const size = file.content.length;
    entries.push({
      type: 'file',
      path,
      size,
      oid: 'git',
      ...(oid === undefined ? {} : { lfs: { oid, size } }),
    });
  }
  const isLast = (at.page + 1) * 2 >= entries.length;
  const next = `${hub.endpoint}/api/models/${at.repository}/tree/${COMMIT}?recursive=true&page=${at.page + 1}`;
  const link = { link: `<${next}>; rel="next"` };
  answer(response, 200, entries.slice(at.page * 2, at.page * 2 + 2), isLast ? {} : link);
}

async function onStore(hub: ModelHub, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = note(hub, 'store', request).replace(/\?.*$/, '');
  const [, repository = '', name = ''] = /^\/([^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
  const content = hub.repositories.get(repository)?.get(name)?.content;
  const status = hub.statuses.shift();
  if (status !== undefined || content === undefined) {
    answer(response, status ?? 404, {});
    return;
  }
  const etag = `"${sha256Of(content).slice(0, 16)}${hub.etagSuffix}"`;
  const { range } = request.headers;
  const ifRange = request.headers['if-range'];
  const isRange = range !== undefined && (ifRange === undefined || ifRange === etag);
  const start = isRange ? Number(/^bytes=(\d+)-$/.exec(range)?.[1] ?? 0) : 0;
  if (isRange && start >= content.length) {
    answer(response, 416, {}, { 'content-range': `bytes */${content.length}` });
    return;
  }
  const body = content.subarray(start);
  response.writeHead(isRange ? 206 : 200, {
    etag,
    'content-length': body.length,
    ...(isRange ? { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` } : {}),
  });
  if (hub.drops.count > 0 && body.length > hub.drops.afterByteLength) {
    hub.drops.count--;
    response.write(body.subarray(0, hub.drops.afterByteLength));
    const isTaken = hub.drops.isTaken ?? (() => true);
    while (!isTaken() && !response.destroyed) await new Promise((resolve) => setTimeout(resolve, 10));
    response.destroy();
    return;
  }
  const pace = hub.paceByteLength ?? body.length;
  for (let at = 0; at < body.length && !response.destroyed; at += pace) {
    response.write(body.subarray(at, at + pace));
    if (pace < body.length) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  response.end();
}
