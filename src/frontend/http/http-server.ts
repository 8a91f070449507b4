// The HTTP listener of the inference API: one node:http server, routing, restricted APIs, methods, and what to
// do with bytes that are not HTTP. Endpoints are in their own files.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HTTP_HEAD_MS_MAX, HTTP_REQUEST_MS_MAX } from '../../domain/limits.ts';
import { internal, StatusError, unsupported } from '../../domain/status.ts';
import { errorDocument } from '../../wire/v2-json/documents.ts';
import { createInferRequestDecoder } from '../../wire/v2-json/infer-request-decoder.ts';
import { readText } from './body.ts';
import * as endpoints from './endpoints.ts';
import { handleInfer, type InferContext } from './infer-endpoint.ts';
import { JsonThread } from './json-thread.ts';
import { headerOf } from './request-headers.ts';
import { respondError, respondStatus, TEXT_TYPE } from './respond.ts';
import { findRoute, type Route } from './router.ts';
import type { HttpServices, RestrictedCategory } from './services.ts';

const BACKLOG = 1024;
const IDLE_SWEEP_MS = 50;

export interface HttpFrontend {
  readonly port: number;
  /** No new connections; resolves when the open ones have ended. */
  close(): Promise<void>;
  /** Ends every connection now. */
  destroy(): void;
  connectionCount(): Promise<number>;
}

export async function startHttpFrontend(
  services: HttpServices,
  listen: { address: string; port: number; isPortReused: boolean },
): Promise<HttpFrontend> {
  const context: InferContext = {
    services,
    decoder: createInferRequestDecoder(),
    jsonThread: new JsonThread(),
  };
  const server = createServer({ noDelay: true, keepAliveTimeout: 0 }, (req, res) =>
    handle(context, req, res),
  );
  server.headersTimeout = HTTP_HEAD_MS_MAX;
  server.requestTimeout = HTTP_REQUEST_MS_MAX;
  server.keepAliveTimeout = 0;
  server.on('clientError', onClientError);
  await listenOn(server, listen);
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : listen.port,
    close: () => closeServer(server),
    destroy: () => {
      server.closeAllConnections();
      void context.jsonThread.close();
    },
    connectionCount: () =>
      new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0))),
  };
}

function listenOn(
  server: Server,
  listen: { address: string; port: number; isPortReused: boolean },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const where = `${listen.address}:${listen.port}`;
      if (error.code === 'EADDRINUSE') reject(internal(`Socket '${where}' already in use `));
      else reject(internal(`failed to listen on '${where}': ${error.message}`));
    });
    const options = { host: listen.address, port: listen.port, backlog: BACKLOG };
    server.listen(listen.isPortReused ? { ...options, reusePort: true } : options, resolve);
  });
}

/** Connections that are answering end when they fall idle. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS);
    server.close(() => {
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function handle(context: InferContext, req: IncomingMessage, res: ServerResponse): void {
  const { services } = context;
  res.sendDate = false;
  const route = findRoute(req.url ?? '/');
  if (route === undefined) {
    respondStatus(res, { status: 404, message: 'Not Found' });
    return;
  }
  const restricted = services.restrictedApis.get(categoryOf(route));
  if (restricted !== undefined && headerOf(req, restricted.header.toLowerCase()) !== restricted.value) {
    const message = `This API is restricted, expecting header '${restricted.header}'`;
    respondStatus(res, { status: 403, message });
    return;
  }
  if (!isMethodAllowed(route, req.method ?? 'GET')) {
    respondStatus(res, { status: 405, message: 'Method Not Allowed' });
    return;
  }
  if (route.kind === 'model' && route.action === 'infer') {
    handleInfer(context, { req, res, model: route.model, version: route.version });
    return;
  }
  dispatch(services, route, req, res).catch((thrown: unknown) => {
    const error = StatusError.from(thrown);
    if (!(thrown instanceof StatusError)) services.logger.error(`HTTP request failed: ${error.stack}`);
    respondError(res, error, route.kind === 'health' ? TEXT_TYPE : undefined);
  });
}

async function dispatch(
  services: HttpServices,
  route: Route,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  switch (route.kind) {
    case 'server-metadata':
      return endpoints.serverMetadata(services, res);
    case 'health':
      return endpoints.health(services, res, route.what);
    case 'model':
      return dispatchModel(services, route, res);
    case 'all-stats':
      return endpoints.allStatistics(services, res);
    case 'index':
      return endpoints.repositoryIndex(services, res, await readText(req));
    case 'control':
      return endpoints.control(services, res, { ...route, body: await readText(req) });
    case 'logging':
      return endpoints.logging(services, res, req.method === 'POST' ? await readText(req) : undefined);
    case 'absent':
      throw unsupported(`${route.name} is not served by this version`);
  }
}

function dispatchModel(
  services: HttpServices,
  route: Extract<Route, { kind: 'model' }>,
  res: ServerResponse,
): void {
  if (route.action === 'metadata') endpoints.modelMetadata(services, res, route);
  else if (route.action === 'config') endpoints.modelConfig(services, res, route);
  else if (route.action === 'stats') endpoints.modelStatistics(services, res, route);
  else endpoints.modelReady(services, res, route);
}

const MODEL_CATEGORIES: Readonly<Record<string, RestrictedCategory>> = {
  metadata: 'metadata',
  infer: 'inference',
  ready: 'health',
  config: 'model-config',
  stats: 'statistics',
};

function categoryOf(route: Route): RestrictedCategory {
  switch (route.kind) {
    case 'server-metadata':
      return 'metadata';
    case 'health':
      return 'health';
    case 'model':
      return MODEL_CATEGORIES[route.action]!;
    case 'all-stats':
      return 'statistics';
    case 'logging':
      return 'logging';
    case 'index':
    case 'control':
      return 'model-repository';
    case 'absent':
      return route.category;
  }
}

function isMethodAllowed(route: Route, method: string): boolean {
  if (route.kind === 'logging') return method === 'GET' || method === 'POST';
  if (route.kind === 'absent') return true;
  const isPost =
    route.kind === 'index' ||
    route.kind === 'control' ||
    (route.kind === 'model' && route.action === 'infer');
  return method === (isPost ? 'POST' : 'GET');
}

/** Bytes that are not HTTP end the connection, as in Triton; an unknown method is answered first. */
function onClientError(error: NodeJS.ErrnoException & { rawPacket?: Buffer }, stream: Duplex): void {
  const socket = stream as Socket;
  const open = openResponseOf(socket);
  if (!socket.writable) socket.destroy();
  // Garbage behind a complete request: that request is still answered, then the connection ends.
  // One that was cut off in its body never will be, and must not keep the connection.
  else if (open?.req.complete === true) open.once('finish', () => socket.destroySoon());
  else if (error.code === 'HPE_INVALID_METHOD' && isRequestLine(error.rawPacket)) {
    socket.end(rawAnswer('405 Method Not Allowed', 'Method Not Allowed'));
  } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    socket.end(rawAnswer('408 Request Timeout', 'the request did not arrive in time'));
  } else socket.destroy();
}

function isRequestLine(packet: Buffer | undefined): boolean {
  return packet !== undefined && /^[A-Z]+ \/\S* HTTP\/1\.[01]\r\n/.test(packet.toString('latin1', 0, 4096));
}

/** node keeps the response in progress on its socket. */
function openResponseOf(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}

function rawAnswer(statusLine: string, message: string): string {
  const body = errorDocument(message);
  return `HTTP/1.1 ${statusLine}\r\nContent-Type: ${TEXT_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`;
}
