// A gRPC server that knows its answers by heart: every path has one recorded message. Three transports, one program, so
// that bench/transports.mjs compares nothing but the transport. Usage: transport-server.mjs KIND PORT ANSWERS.json
import { readFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer } from 'node:net';
import { encodeMessage } from '../dist/wire/v2-proto/encode-message.js';

const [kind, port, file] = process.argv.slice(2);
let inferCount = 0;

const answers = new Map(
  Object.entries(JSON.parse(readFileSync(file, 'utf8'))).map(([path, text]) => {
    const message = Buffer.from(text, 'base64');
    return [path, path.endsWith('/ModelInfer') ? () => countInfer(message) : () => message];
  }),
);
answers.set('/inference.GRPCInferenceService/ModelStatistics', createStatistics);

function countInfer(message) {
  inferCount++;
  return message;
}

/** perf_analyzer looks for statistics that change. */
function createStatistics() {
  const duration = { count: inferCount, ns: inferCount };
  const inference_stats = Object.fromEntries(
    ['success', 'queue', 'compute_input', 'compute_infer', 'compute_output'].map((name) => [name, duration]),
  );
  const statistics = {
    name: 'mlp',
    version: '1',
    last_inference: Date.now(),
    inference_count: inferCount,
    execution_count: inferCount,
    inference_stats,
    batch_stats: [],
    memory_usage: [],
    response_stats: {},
  };
  return encodeMessage('ModelStatisticsResponse', { model_stats: [statistics] });
}

const START = {
  async own() {
    const { Http2Connection } = await import('../dist/frontend/grpc/http2/http2-connection.js');
    const { encodeHeaderBlock } = await import('../dist/frontend/grpc/http2/hpack-encoder.js');
    const head = encodeHeaderBlock([
      [':status', '200'],
      ['content-type', 'application/grpc'],
    ]);
    const trailers = encodeHeaderBlock([['grpc-status', '0']]);
    const handler = {
      onRequest(stream, headers) {
        const path = headers.find(([name]) => name === ':path')[1];
        return {
          onData: (data) => stream.consumed(data.length),
          onEnd: () => stream.sendAll(head, [framed(answers.get(path)())], trailers),
          onAbort() {},
          onDrain() {},
        };
      },
    };
    createServer({ noDelay: true }, (socket) => new Http2Connection(socket, handler)).listen(
      port,
      '127.0.0.1',
    );
  },

  async http2() {
    const server = createHttp2Server();
    server.on('stream', (stream, headers) => {
      stream.on('data', () => {});
      stream.on('error', () => {});
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.end(framed(answers.get(headers[':path'])()));
      });
    });
    server.listen(port, '127.0.0.1');
  },

  async 'grpc-js'() {
    const { Server, ServerCredentials } = await import('@grpc/grpc-js');
    const server = new Server({ 'grpc.max_receive_message_length': -1 });
    const service = Object.fromEntries(
      [...answers.keys()].map((path) => [
        path,
        {
          path,
          requestStream: false,
          responseStream: false,
          requestSerialize: (bytes) => bytes,
          requestDeserialize: (bytes) => bytes,
          responseSerialize: (bytes) => bytes,
          responseDeserialize: (bytes) => bytes,
        },
      ]),
    );
    const handlers = Object.fromEntries(
      [...answers].map(([path, answer]) => [path, (_call, callback) => callback(null, answer())]),
    );
    server.addService(service, handlers);
    await new Promise((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
  },
};

function framed(message) {
  const bytes = Buffer.allocUnsafe(5 + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  message.copy(bytes, 5);
  return bytes;
}

await START[kind]();
process.send?.('ready');
