// The gRPC listener: accepts connections, plain or TLS, opens calls, checks restricted protocols. RPCs are in
// rpc-table.ts, the transport in http2/. docs/adr/0006 says why this is not grpc-js.

import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { StatusError, unavailable } from '../../domain/status.ts';
import { listenOn } from '../listen.ts';
import { createTlsContext, type TlsContext, type TlsFiles } from '../tls-context.ts';
import { GrpcCall } from './grpc-call.ts';
import { findHeader, NOT_GRPC_HEAD, readCallHeaders } from './grpc-headers.ts';
import { Http2Connection } from './http2/http2-connection.ts';
import type {
  HeaderPair,
  Http2Handler,
  Http2Options,
  Http2Stream,
  StreamConsumer,
} from './http2/http2-types.ts';
import { findRpc, type Rpc } from './rpc-table.ts';
import type { GrpcServices } from './services.ts';

/** How often connections are looked at for timeouts, keepalive and age. */
const SWEEP_MS = 1000;
const UNIMPLEMENTED_CODE = 12;

export interface GrpcListenOptions {
  readonly address: string;
  readonly port: number;
  readonly isPortReused: boolean;
  readonly tls: TlsFiles | undefined;
  readonly http2: Http2Options;
}

export interface GrpcFrontend {
  readonly port: number;
  /** No new connections and calls; resolves when the open ones have ended. */
  close(): Promise<void>;
  /** Ends every connection now. */
  destroy(): void;
}

export async function startGrpcFrontend(
  services: GrpcServices,
  options: GrpcListenOptions,
): Promise<GrpcFrontend> {
  const handler = createHandler(services);
  const connections = new Set<Http2Connection>();
  const onSocket = (socket: Socket): void => {
    const connection = new Http2Connection(socket, handler, options.http2);
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
  };
  const { tls } = options;
  const context =
    tls === undefined
      ? undefined
      : await createTlsContext({ files: tls, label: 'grpc', protocol: 'h2', logger: services.logger });
  const server = createListener(context, onSocket);
  await listenOn(server, options);
  server.on('error', (error) => services.logger.error(`gRPC listener: ${error.message}`));
  const sweep = setInterval(() => {
    const nowMs = performance.now();
    for (const connection of connections) connection.checkTime(nowMs);
  }, SWEEP_MS);
  sweep.unref();
  const stop = (): void => {
    clearInterval(sweep);
    context?.close();
  };
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : options.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          stop();
          resolve();
        });
        for (const connection of connections) connection.endSoon();
      }),
    destroy: () => {
      stop();
      server.close();
      for (const connection of connections) connection.destroy();
    },
  };
}

function createListener(context: TlsContext | undefined, onSocket: (socket: Socket) => void): Server {
  if (context === undefined) return createServer({ noDelay: true }, onSocket);
  const server = createTlsServer(context.serverOptions, onSocket);
  context.attach(server);
  // A handshake that fails costs its own connection, which the server has closed already.
  server.on('tlsClientError', () => {});
  return server;
}

function createHandler(services: GrpcServices): Http2Handler {
  return {
    onRequest: (stream, pairs, isEnd) => openCall(services, stream, { pairs, isEnd }),
    onDefect: (thrown) => services.logger.error(`gRPC call failed: ${StatusError.from(thrown).stack}`),
  };
}

function openCall(
  services: GrpcServices,
  stream: Http2Stream,
  { pairs, isEnd }: { pairs: readonly HeaderPair[]; isEnd: boolean },
): StreamConsumer {
  const headers = readCallHeaders(pairs);
  if (headers.method !== 'POST' || !headers.contentType.startsWith('application/grpc')) {
    stream.sendHeaderBlock(NOT_GRPC_HEAD, true);
    return IGNORE;
  }
  const { logger } = services;
  if (logger.isVerbose(1)) logger.verbose(1, `gRPC call: ${headers.path}`);
  const call = new GrpcCall(stream, headers);
  const rpc = findRpc(headers.path);
  if (rpc === undefined) {
    call.end({ code: UNIMPLEMENTED_CODE, message: '' });
    return call;
  }
  const refusal = restrictionOf(services, rpc, pairs);
  if (refusal !== undefined) call.fail(refusal);
  else call.start(rpc.open(services, call));
  // The headers were the whole request: nothing else would tell the call.
  if (isEnd) call.onEnd();
  return call;
}

function restrictionOf(
  services: GrpcServices,
  rpc: Rpc,
  pairs: readonly HeaderPair[],
): StatusError | undefined {
  if (rpc.category === undefined || services.restrictedProtocols.size === 0) return undefined;
  const restricted = services.restrictedProtocols.get(rpc.category);
  if (restricted === undefined || findHeader(pairs, restricted.header.toLowerCase()) === restricted.value) {
    return undefined;
  }
  return unavailable(`This protocol is restricted, expecting header '${restricted.header}'`);
}

/** For streams that are answered already. */
const IGNORE: StreamConsumer = { onData: () => {}, onEnd: () => {}, onAbort: () => {}, onDrain: () => {} };
