// The HTTP listener of the inference API: accepts connections, routes requests, checks restricted APIs and
// methods. Endpoints are in their own files.

import { createServer, type Server } from 'node:net';
import { HTTP_HEAD_MS_MAX, HTTP_REQUEST_MS_MAX } from '../../domain/limits.ts';
import { internal, StatusError, unsupported } from '../../domain/status.ts';
import { createInferRequestDecoder } from '../../wire/v2-json/infer-request-decoder.ts';
import { errorAnswer, type HttpAnswer, statusAnswer, TEXT_TYPE } from './answer.ts';
import * as endpoints from './endpoints.ts';
import { HttpConnection, type HttpExchange, type HttpHandler } from './http-connection.ts';
import { beginInfer, type InferContext } from './infer-endpoint.ts';
import { JsonThread } from './json-thread.ts';
import { headerOf } from './request-head.ts';
import { categoryOf, findRoute, isMethodAllowed, type Route } from './router.ts';
import type { HttpServices } from './services.ts';

const BACKLOG = 1024;
/** How often slow clients are looked for. */
const SLOW_SWEEP_MS = 5000;

export interface HttpFrontend {
  readonly port: number;
  /** No new connections; resolves when the open ones have ended. */
  close(): Promise<void>;
  /** Ends every connection now. */
  destroy(): void;
}

export async function startHttpFrontend(
  services: HttpServices,
  listen: { address: string; port: number; isPortReused: boolean },
): Promise<HttpFrontend> {
  const jsonThread = new JsonThread();
  const handler = createHandler({ services, decoder: createInferRequestDecoder(), jsonThread });
  const connections = new Set<HttpConnection>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const connection = new HttpConnection(socket, handler);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
  });
  await listenOn(server, listen);
  // Accepting can fail for a moment, for instance for want of descriptors; that must not end the process.
  server.on('error', (error) => services.logger.error(`HTTP listener: ${error.message}`));
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
    close: () => closeServer(server, connections),
    destroy: () => {
      for (const connection of connections) connection.destroy();
      void jsonThread.close();
    },
  };
}

function listenOn(
  server: Server,
  listen: { address: string; port: number; isPortReused: boolean },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const where = `${listen.address}:${listen.port}`;
      if (error.code === 'EADDRINUSE') reject(internal(`Socket '${where}' already in use `));
      else reject(internal(`failed to listen on '${where}': ${error.message}`));
    };
    server.once('error', onError);
    const options = { host: listen.address, port: listen.port, backlog: BACKLOG };
    server.listen(listen.isPortReused ? { ...options, reusePort: true } : options, () => {
      server.off('error', onError);
      resolve();
    });
  });
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
  if (route === undefined) return refusal(exchange, errorAnswer(404, 'Not Found'));
  const restricted = services.restrictedApis.get(categoryOf(route));
  if (restricted !== undefined && headerOf(head, restricted.header.toLowerCase()) !== restricted.value) {
    const message = `This API is restricted, expecting header '${restricted.header}'`;
    return refusal(exchange, errorAnswer(403, message));
  }
  if (!isMethodAllowed(route, head.method)) return refusal(exchange, errorAnswer(405, 'Method Not Allowed'));
  if (route.kind === 'model' && route.action === 'infer') return beginInfer(context, exchange, route);
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
    case 'absent':
      throw unsupported(`${route.name} is not served by this version`);
  }
}

function modelAnswer(services: HttpServices, route: Extract<Route, { kind: 'model' }>): HttpAnswer {
  if (route.action === 'metadata') return endpoints.modelMetadata(services, route);
  if (route.action === 'config') return endpoints.modelConfig(services, route);
  if (route.action === 'stats') return endpoints.modelStatistics(services, route);
  return endpoints.modelReady(services, route);
}
