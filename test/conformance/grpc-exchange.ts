// One gRPC call, sent as a case says, by grpc-js as a client: bytes in, bytes out. The answer comes back in the form
// the cases record it.
import {
  type CallOptions,
  Client,
  type ClientDuplexStream,
  compressionAlgorithms,
  credentials,
  Metadata,
  type ServiceError,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import type { GrpcCaseRequest } from './cases.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { decodeMessage, encodeMessage, messageType } from './proto-json.ts';

const CALL_MS_MAX = 30_000;
const SERVICE = 'inference.GRPCInferenceService';
/** How these end is told by the client, and every client words it differently. */
const CODES_WITHOUT_DETAILS = [status.CANCELLED, status.DEADLINE_EXCEEDED];

type Compression = 'none' | 'gzip' | 'deflate';
type ParseAnswer = (data: Buffer) => JsonObject;

interface PreparedCall {
  readonly path: string;
  readonly payloads: readonly Buffer[];
  readonly parse: ParseAnswer;
  readonly metadata: Metadata;
  readonly options: CallOptions;
}

/** Connections to one server, one for each compression, because grpc-js sets that per channel. */
export class GrpcTarget {
  readonly #address: string;
  readonly #clients = new Map<Compression, Client>();

  constructor(address: string) {
    this.#address = address;
  }

  client(compression: Compression): Client {
    const found = this.#clients.get(compression);
    if (found !== undefined) return found;
    const algorithm = compression === 'none' ? 'identity' : compression;
    const client = new Client(this.#address, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.enable_retries': 0,
      'grpc.default_compression_algorithm': compressionAlgorithms[algorithm],
    });
    this.#clients.set(compression, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }
}

export function grpcExchange(target: GrpcTarget, request: GrpcCaseRequest): Promise<JsonObject> {
  const client = target.client(request.compression ?? 'none');
  const call = prepareCall(request);
  return request.messages === undefined
    ? unaryExchange(client, call, request)
    : streamExchange(client, call, request);
}

function prepareCall(request: GrpcCaseRequest): PreparedCall {
  const path = request.rpc.startsWith('/') ? request.rpc : `/${SERVICE}/${request.rpc}`;
  const metadata = new Metadata();
  for (const [key, value] of request.metadata ?? []) metadata.add(key, value);
  return {
    path,
    payloads: requestPayloads(request),
    parse: answerParser(path),
    metadata,
    options: { deadline: Date.now() + (request.timeout_ms ?? CALL_MS_MAX) },
  };
}

function requestPayloads(request: GrpcCaseRequest): Buffer[] {
  if (request.bytes_b64 !== undefined) return [Buffer.from(request.bytes_b64, 'base64')];
  const name = request.rpc === 'ModelStreamInfer' ? 'ModelInferRequest' : `${request.rpc}Request`;
  const type = messageType(name);
  if (type === undefined) throw new Error(`${request.rpc} has no request message; a case gives its bytes`);
  return (request.messages ?? [request.message ?? {}]).map((message) => encodeMessage(type, message));
}

function answerParser(path: string): ParseAnswer {
  if (path === '/grpc.health.v1.Health/Check') return (data) => ({ status_bytes: data.toString('base64') });
  const type = messageType(`${path.slice(path.lastIndexOf('/') + 1)}Response`);
  return type === undefined
    ? (data) => ({ bytes_b64: data.toString('base64') })
    : (data) => decodeMessage(type, data);
}

const bytes = (data: Buffer): Buffer => data;

function unaryExchange(client: Client, call: PreparedCall, request: GrpcCaseRequest): Promise<JsonObject> {
  return new Promise((resolve, reject) => {
    const { path, payloads, parse, metadata, options } = call;
    const done = (error: ServiceError | null, data?: Buffer) => {
      clearTimeout(cancelTimer);
      if (error !== null) resolve(statusRecord(error));
      else if (data === undefined) reject(new Error('neither an error nor an answer'));
      else resolve({ code: 'OK', message: parse(data) });
    };
    const [payload = Buffer.alloc(0)] = payloads;
    const sent = client.makeUnaryRequest(path, bytes, bytes, payload, metadata, options, done);
    const cancelTimer = cancelLater(sent, request);
  });
}

function streamExchange(client: Client, call: PreparedCall, request: GrpcCaseRequest): Promise<JsonObject> {
  return new Promise((resolve) => {
    const { path, payloads, parse, metadata, options } = call;
    const stream: ClientDuplexStream<Buffer, Buffer> = client.makeBidiStreamRequest(
      path,
      bytes,
      bytes,
      metadata,
      options,
    );
    const answers: Json[] = [];
    let sentCount = 0;
    /** Half-closes after the last. */
    const sendNext = () => {
      const payload = payloads[sentCount];
      if (payload !== undefined) stream.write(payload);
      sentCount++;
      if (sentCount >= payloads.length) stream.end();
    };
    stream.on('data', (data: Buffer) => {
      answers.push(parse(data));
      if (request.wait === 'each' && sentCount < payloads.length) sendNext();
    });
    // The status comes as an event of its own, whatever it is.
    stream.on('error', () => {});
    stream.on('status', (ended: StatusObject) => {
      clearTimeout(cancelTimer);
      // Answers that arrived with the status are handed out before it counts.
      setImmediate(() => resolve({ ...statusRecord(ended), messages: answers }));
    });
    const cancelTimer = cancelLater(stream, request);
    do sendNext();
    while (request.wait !== 'each' && sentCount < payloads.length);
  });
}

function cancelLater(call: { cancel(): void }, { cancel_after_ms: afterMs }: GrpcCaseRequest) {
  return afterMs === undefined ? undefined : setTimeout(() => call.cancel(), afterMs);
}

function statusRecord({ code, details }: Pick<StatusObject, 'code' | 'details'>): JsonObject {
  const name = status[code] ?? String(code);
  return code === status.OK || CODES_WITHOUT_DETAILS.includes(code)
    ? { code: name }
    : { code: name, details };
}

/** The message of a recorded or received answer to a unary call. */
export function answerMessage(answer: JsonObject | undefined): JsonObject | undefined {
  return isObject(answer?.message) ? answer.message : undefined;
}
