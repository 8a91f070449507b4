// The HTTP listener of the inference API: accepts connections, routes requests, checks restricted APIs and
// methods. Endpoints are in their own files.

import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { HTTP_HEAD_MS_MAX, HTTP_REQUEST_MS_MAX } from '../../domain/limits.ts';
import { StatusError } from '../../domain/status.ts';
import type { Logger } from '../../lib/logger.ts';
import { createInferRequestDecoder } from '../../wire/v2-json/infer-request-decoder.ts';
import type { HttpRoutes } from '../http-routes.ts';
import { type ListenAddress, listenOn } from '../listen.ts';
import { createTlsContext, type TlsContext, type TlsFiles } from '../tls-context.ts';
import { errorAnswer, type HttpAnswer, JSON_TYPE, statusAnswer, TEXT_TYPE } from './answer.ts';
import * as endpoints from './endpoints.ts';
import { beginGenerate } from './generate-endpoint.ts';
import { HttpConnection, type HttpExchange, type HttpHandler } from './http-connection.ts';
import { beginInfer, type InferContext } from './infer-endpoint.ts';
import { headerOf } from './request-head.ts';
import { categoryOf, findRoute, isLabelRoute, isMethodAllowed, pathOf, type Route } from './router.ts';
import type { HttpServices } from './services.ts';
import { sharedMemory } from './shared-memory-endpoints.ts';
import { traceSettings } from './trace-endpoints.ts';

/** How often slow clients are looked for. */
const SLOW_SWEEP_MS = 5000;

export interface HttpFrontend {
  readonly port: number;
  /** No new connections; resolves when the open ones have ended. */
  close(): Promise<void>;
  /** Ends every connection now. */
  destroy(): void;
}

export interface HttpListen extends ListenAddress {
  /** Undefined: plain HTTP. */
  readonly ssl?: TlsFiles | undefined;
}

/** The inference API, with the further routes of the services beside it. */
export function startHttpFrontend(services: HttpServices, listen: HttpListen): Promise<HttpFrontend> {
  const handler = createHandler({ services, decoder: createInferRequestDecoder() });
  return openFrontend(handler, listen, services.logger);
}

/** A listener with nothing but these routes. */
export function startRoutesFrontend(
  { routes, logger }: { routes: HttpRoutes; logger: Logger },
  listen: HttpListen,
): Promise<HttpFrontend> {
  const handler: HttpHandler = {
    begin: (exchange) => beginRouted(routes, exchange) ?? refusal(exchange, errorAnswer(404, 'Not Found')),
    onDefect: (thrown) => logger.error(`HTTP request failed: ${StatusError.from(thrown).stack}`),
  };
  return openFrontend(handler, listen, logger);
}

async function openFrontend(handler: HttpHandler, listen: HttpListen, logger: Logger): Promise<HttpFrontend> {
  const tls = listen.ssl === undefined ? undefined : await openTls(listen.ssl, logger);
  const connections = new Set<HttpConnection>();
  const server = createListener({ tls, logger }, (socket) => {
    const connection = new HttpConnection(socket, handler);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
  });
  try {
    await listenOn(server, listen);
  } catch (thrown) {
    tls?.close();
    throw thrown;
  }
  // Accepting can fail for a moment, for instance for want of descriptors; that must not end the process.
  server.on('error', (error) => logger.error(`HTTP listener: ${error.message}`));
  const sweep = setInterval(() => {
    const nowMs = performance.now();
    const limits = { headMsMax: HTTP_HEAD_MS_MAX, requestMsMax: HTTP_REQUEST_MS_MAX };
    for (const connection of connections) connection.checkTime(nowMs, limits);
  }, SLOW_SWEEP_MS);
  sweep.unref();
  server.on('close', () => clearInterval(sweep));
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : listen.port,
    close: () => {
      tls?.close();
      return closeServer(server, connections);
    },
    destroy: () => {
      tls?.close();
      for (const connection of connections) connection.destroy();
    },
  };
}

function openTls(files: TlsFiles, logger: Logger): Promise<TlsContext> {
  return createTlsContext({ files, label: 'http', protocol: 'http/1.1', logger });
}

/** Half-open, because a client may close its side when it has sent all; HttpConnection decides what that means. */
function createListener(
  { tls, logger }: { tls: TlsContext | undefined; logger: Logger },
  onSocket: (socket: Socket) => void,
): Server {
  if (tls === undefined) return createServer({ allowHalfOpen: true }, onSocket);
  const options = { ...tls.serverOptions, allowHalfOpen: true, handshakeTimeout: HTTP_HEAD_MS_MAX };
  const server = createTlsServer(options, onSocket);
  server.on('tlsClientError', (error) => logger.verbose(1, `TLS handshake failed: ${error.message}`));
  tls.attach(server);
  return server;
}

/** Idle connections end at once, the others after their answer. */
function closeServer(server: Server, connections: ReadonlySet<HttpConnection>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const connection of connections) connection.endSoon();
  });
}

function createHandler(context: InferContext): HttpHandler {
  return {
    begin: (exchange) => begin(context, exchange),
    onDefect: (thrown) =>
      context.services.logger.error(`HTTP request failed: ${StatusError.from(thrown).stack}`),
  };
}

function begin(context: InferContext, exchange: HttpExchange): ReturnType<HttpHandler['begin']> {
  const { services } = context;
  const { head } = exchange;
  if (services.logger.isVerbose(1)) services.logger.verbose(1, `HTTP request: ${head.method} ${head.target}`);
  const route = findRoute(head.target);
  if (route === undefined || !isServed(services, route)) {
    const { furtherRoutes } = services;
    const plan = furtherRoutes === undefined ? undefined : beginRouted(furtherRoutes, exchange);
    return plan ?? refusal(exchange, errorAnswer(404, 'Not Found'));
  }
  const restricted = services.restrictedApis.get(categoryOf(route));
  if (restricted !== undefined && headerOf(head, restricted.header.toLowerCase()) !== restricted.value) {
    const message = `This API is restricted, expecting header '${restricted.header}'`;
    return refusal(exchange, errorAnswer(403, message));
  }
  if (!isMethodAllowed(route, head.method)) {
    return refusal(
      exchange,
      errorAnswer(405, 'Method Not Allowed', isGenerate(route) ? JSON_TYPE : TEXT_TYPE),
    );
  }
  if (route.kind === 'model') {
    if (route.action === 'infer') return beginInfer(context, exchange, route);
    if (route.action === 'generate' || route.action === 'generate_stream') {
      return beginGenerate(context, exchange, { ...route, isStream: route.action === 'generate_stream' });
    }
  }
  return {
    isBodyKept: true,
    onBody: (body) => {
      answerOf(services, route, { method: head.method, body: Buffer.concat(body.pieces) }).then(
        (answer) => exchange.respond(answer),
        (thrown: unknown) => {
          const error = StatusError.from(thrown);
          if (!(thrown instanceof StatusError)) services.logger.error(`HTTP request failed: ${error.stack}`);
          exchange.respond(statusAnswer(error, route.kind === 'health' ? TEXT_TYPE : undefined));
        },
      );
    },
  };
}

function beginRouted(
  routes: HttpRoutes,
  exchange: HttpExchange,
): ReturnType<HttpHandler['begin']> | undefined {
  const { head } = exchange;
  return routes.begin({
    method: head.method,
    path: pathOf(head.target),
    bodyLength: head.bodyLength,
    cancellation: exchange.cancellation,
    header: (name) => headerOf(head, name),
    respond: (answer) => exchange.respond(answer),
    begin: (answerHead) => exchange.begin(answerHead),
  });
}

function isServed(services: HttpServices, route: Route): boolean {
  return route.kind !== 'model' || !isLabelRoute(route) || services.catalog.labelsOf(route.model).size > 0;
}

/** Triton sets its content type before it looks at the method. */
function isGenerate(route: Route): boolean {
  return route.kind === 'model' && (route.action === 'generate' || route.action === 'generate_stream');
}

/** The answer is known before the body, which is read and dropped. */
export function refusal(exchange: HttpExchange, answer: HttpAnswer): ReturnType<HttpHandler['begin']> {
  return { isBodyKept: false, onBody: () => exchange.respond(answer) };
}

async function answerOf(
  services: HttpServices,
  route: Route,
  call: { method: string; body: Buffer },
): Promise<HttpAnswer> {
  switch (route.kind) {
    case 'server-metadata':
      return endpoints.serverMetadata(services);
    case 'health':
      return endpoints.health(services, route.what);
    case 'model':
      return modelAnswer(services, route);
    case 'all-stats':
      return endpoints.allStatistics(services);
    case 'index':
      return endpoints.repositoryIndex(services, call.body);
    case 'control':
      return endpoints.control(services, { ...route, body: call.body });
    case 'logging':
      return endpoints.logging(services, call.method === 'POST' ? call.body : undefined);
    case 'trace':
      return traceSettings(services, {
        model: route.model,
        body: call.method === 'POST' ? call.body : undefined,
      });
    case 'shared-memory':
      return sharedMemory(services, { ...route, body: call.body });
  }
}

function modelAnswer(
  services: HttpServices,
  route: Extract<Route, { kind: 'model' }>,
): HttpAnswer | Promise<HttpAnswer> {
  if (route.action === 'metadata') return endpoints.modelMetadata(services, route);
  if (route.action === 'config') return endpoints.modelConfig(services, route);
  if (route.action === 'stats') return endpoints.modelStatistics(services, route);
  return endpoints.modelReady(services, route);
}
