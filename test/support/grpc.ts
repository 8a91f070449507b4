// A gRPC client for the fault tests: grpc-js for what an honest client does, node:http2 for headers and bytes that no
// gRPC library would send. Messages are made by protobufjs, not by the server's own codec.
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { Client, type ClientDuplexStream, credentials, Metadata, type StatusObject } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { inRoot } from './paths.ts';

const root = new protobuf.Root();
root.resolvePath = (_, file) => inRoot('proto', file);
root.loadSync(['grpc_service.proto'], { keepCase: true });

export const SERVICE = '/inference.GRPCInferenceService';
const ANSWER_MS_MAX = 20_000;

export interface RequestInput {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

export interface InferAnswer {
  readonly id: string;
  readonly model_name: string;
  readonly outputs: readonly { readonly name: string }[];
  readonly raw_output_contents: readonly Uint8Array[];
  readonly parameters: Readonly<Record<string, { readonly bool_param?: boolean }>>;
}

export interface StreamAnswer {
  readonly error_message: string;
  readonly infer_response: InferAnswer | null;
}

export function encodeRequest(
  model: string,
  inputs: readonly RequestInput[],
  extra: Readonly<Record<string, unknown>> = {},
): Buffer {
  const type = root.lookupType('inference.ModelInferRequest');
  const message = type.create({
    model_name: model,
    inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    raw_input_contents: inputs.map(({ bytes }) => bytes),
    ...extra,
  });
  return Buffer.from(type.encode(message).finish());
}

/** For the models of addIdentity. */
export function identityRequest(model: string, value: number, id = ''): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return encodeRequest(model, [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 1], bytes }], { id });
}

/** One response for each number below `count`, each after `delayMs`. */
export function repeatRequest(
  model: string,
  options: { readonly count: number; readonly delayMs?: number; readonly id?: string },
): Buffer {
  const { count, delayMs = 0, id = '' } = options;
  const values = Buffer.from(Uint32Array.from({ length: count }, (_, i) => i).buffer);
  const delays = Buffer.from(new Uint32Array(count).fill(delayMs).buffer);
  return encodeRequest(
    model,
    [
      { name: 'IN', datatype: 'INT32', shape: [count], bytes: values },
      { name: 'DELAY', datatype: 'UINT32', shape: [count], bytes: delays },
      { name: 'WAIT', datatype: 'UINT32', shape: [1], bytes: Buffer.alloc(4) },
    ],
    { id },
  );
}

/** That many responses. */
export function squareRequest(model: string, count: number, id = ''): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(count);
  return encodeRequest(model, [{ name: 'IN', datatype: 'INT32', shape: [1], bytes }], { id });
}

export function decodeAnswer(bytes: Buffer): InferAnswer {
  return root.lookupType('inference.ModelInferResponse').decode(bytes) as unknown as InferAnswer;
}

export function decodeStreamAnswer(bytes: Buffer): StreamAnswer {
  return root.lookupType('inference.ModelStreamInferResponse').decode(bytes) as unknown as StreamAnswer;
}

/** The first element of an identity answer. */
export function floatOf(answer: InferAnswer): number {
  return Buffer.from(answer.raw_output_contents[0]!).readFloatLE();
}

export interface CallAnswer {
  readonly code: number;
  readonly details: string;
  readonly bytes: Buffer | undefined;
  readonly tookMs: number;
}

export interface CallOptions {
  readonly timeoutMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

type ByteStream = ClientDuplexStream<Buffer, Buffer>;
const same = (bytes: Buffer): Buffer => bytes;

function metadataOf(options: CallOptions): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(options.metadata ?? {})) metadata.set(name, value);
  return metadata;
}

/** A ModelStreamInfer call of which everything is remembered. */
export class InferStream {
  readonly call: ByteStream;
  readonly answers: StreamAnswer[] = [];
  readonly ended: Promise<StatusObject>;
  #onAnswer: (() => void) | undefined;

  constructor(call: ByteStream) {
    this.call = call;
    // The status comes as an event of its own, whatever it is.
    call.on('error', () => {});
    this.ended = new Promise((resolve) => {
      call.on('status', (ended: StatusObject) => setImmediate(resolve, ended));
    });
  }

  /** Until this is called nothing is read. */
  read(): this {
    this.call.on('data', (bytes: Buffer) => {
      this.answers.push(decodeStreamAnswer(bytes));
      this.#onAnswer?.();
    });
    return this;
  }

  send(...messages: readonly Buffer[]): this {
    for (const message of messages) this.call.write(message);
    return this;
  }

  /** Resolves with the answers when there are so many. */
  async received(count: number): Promise<readonly StreamAnswer[]> {
    const endMs = performance.now() + ANSWER_MS_MAX;
    while (this.answers.length < count) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw new Error(`${this.answers.length} answers, not ${count}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#onAnswer = () => {
          if (this.answers.length < count) return;
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.answers;
  }

  /** Half-closes and waits for the end. */
  async end(): Promise<StatusObject> {
    this.call.end();
    return this.ended;
  }
}

export class GrpcClient {
  readonly #client: Client;

  /**
   * A call that this side's HTTP/2 refuses, because GOAWAY came in while it was being written, never left; grpc-js sends
   * it again unless told otherwise. Tests that count what the server answers tell it so.
   */
  constructor(address: string, { isRetrying = false }: { readonly isRetrying?: boolean } = {}) {
    this.#client = new Client(address, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.enable_retries': isRetrying ? 1 : 0,
      // Each client has its own connection.
      'grpc.use_local_subchannel_pool': 1,
    });
  }

  start(method: string, message: Buffer, options: CallOptions = {}) {
    const startMs = performance.now();
    let cancel = (): void => {};
    const answer = new Promise<CallAnswer>((resolve) => {
      const call = this.#client.makeUnaryRequest(
        `${SERVICE}/${method}`,
        same,
        same,
        message,
        metadataOf(options),
        { deadline: Date.now() + (options.timeoutMs ?? ANSWER_MS_MAX) },
        (error, bytes) => {
          const tookMs = performance.now() - startMs;
          resolve({ code: error?.code ?? 0, details: error?.details ?? '', bytes, tookMs });
        },
      );
      cancel = () => call.cancel();
    });
    return { answer, cancel };
  }

  call(method: string, message: Buffer, options: CallOptions = {}): Promise<CallAnswer> {
    return this.start(method, message, options).answer;
  }

  /** Throws unless it succeeds. */
  async infer(message: Buffer): Promise<InferAnswer> {
    const { code, details, bytes } = await this.call('ModelInfer', message);
    if (code !== 0) throw new Error(`ModelInfer ended with ${code}: ${details}`);
    return decodeAnswer(bytes!);
  }

  stream(options: CallOptions = {}): InferStream {
    const callOptions = options.timeoutMs === undefined ? {} : { deadline: Date.now() + options.timeoutMs };
    const path = `${SERVICE}/ModelStreamInfer`;
    return new InferStream(
      this.#client.makeBidiStreamRequest(path, same, same, metadataOf(options), callOptions),
    );
  }

  close(): void {
    this.#client.close();
  }
}

/** A message as it is on the wire. */
export function framed(message: Buffer, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export interface RawAnswer {
  readonly httpStatus: number;
  /** Undefined: the stream was reset, or this was no answer of gRPC. */
  readonly grpcStatus: number | undefined;
  readonly grpcMessage: string;
  readonly grpcEncoding: string | undefined;
  readonly body: Buffer;
}

export function openSession(address: string): ClientHttp2Session {
  const session = connect(`http://${address}`, { maxSessionMemory: 1000 });
  session.on('error', () => {});
  return session;
}

export function openRaw(
  session: ClientHttp2Session,
  options: { method: string; headers?: Readonly<Record<string, string>>; isEnd?: boolean },
): ClientHttp2Stream {
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': options.method.startsWith('/') ? options.method : `${SERVICE}/${options.method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...options.headers,
    },
    { endStream: options.isEnd ?? false },
  );
  stream.on('error', () => {});
  return stream;
}

export function drop(stream: ClientHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
}

/** Sends the bytes and the end, and waits for the answer; without `bytes` the headers are the whole request. */
export async function rawCall(
  session: ClientHttp2Session,
  options: { method: string; headers?: Readonly<Record<string, string>>; bytes?: Buffer },
): Promise<RawAnswer> {
  const stream = openRaw(session, { ...options, isEnd: options.bytes === undefined });
  if (options.bytes !== undefined) stream.end(options.bytes);
  return rawAnswer(stream);
}

export async function rawAnswer(stream: ClientHttp2Stream): Promise<RawAnswer> {
  let headers: Record<string, unknown> = {};
  let trailers: Record<string, unknown> = {};
  const pieces: Buffer[] = [];
  stream.on('response', (received) => {
    headers = received;
  });
  stream.on('trailers', (received) => {
    trailers = received;
  });
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  stream.setTimeout(ANSWER_MS_MAX, () => stream.destroy(new Error('no answer')));
  await once(stream, 'close');
  const status = trailers['grpc-status'] ?? headers['grpc-status'];
  return {
    httpStatus: Number(headers[':status'] ?? 0),
    grpcStatus: status === undefined ? undefined : Number(status),
    grpcMessage: decodeURIComponent(String(trailers['grpc-message'] ?? headers['grpc-message'] ?? '')),
    grpcEncoding: headers['grpc-encoding'] as string | undefined,
    body: Buffer.concat(pieces),
  };
}
