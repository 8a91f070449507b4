// The life of a host process: hello, load, start, then execute until the socket closes. Called by src/host.ts.
// One batch runs at a time; later ones wait in arrival order. When the server goes away, so does the host.

import type { Socket } from 'node:net';
import type { Backend, BackendInstance, BackendModel, ExecuteBatch, ExecuteReply } from '../backend/sdk.ts';
import { StatusError, unavailable } from '../domain/status.ts';
import { decodeExecuteFrame } from './execute-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import {
  type CancelMessage,
  encodeControlFrame,
  FRAME_CANCEL,
  FRAME_EXECUTE,
  FRAME_FAILED,
  FRAME_HELLO,
  FRAME_LOAD,
  FRAME_LOADED,
  FRAME_LOG,
  FRAME_PING,
  FRAME_PONG,
  FRAME_START,
  FRAME_STARTED,
  FRAME_STOP,
  type HelloMessage,
  type LoadMessage,
  type LogMessage,
  PROTOCOL_VERSION,
  type StartMessage,
} from './protocol.ts';
import { encodeResponseFrame } from './response-frame.ts';

const EMPTY_PAYLOAD = Buffer.alloc(0);

export interface HostOptions {
  readonly socket: Socket;
  /** Throws a StatusError when there is no such backend. */
  findBackend(name: string): Promise<Backend>;
  exit(code: number): void;
}

export function runHost(options: HostOptions): void {
  new HostLoop(options).run();
}

class HostLoop {
  readonly #options: HostOptions;
  readonly #socket: Socket;
  readonly #waiting: ExecuteBatch[] = [];
  readonly #cancelled = new Set<number>();
  #model: BackendModel | undefined;
  #instance: BackendInstance | undefined;
  #runningId: number | undefined;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#socket = options.socket;
  }

  run(): void {
    const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => this.#onFrame(frame) });
    this.#socket.on('data', (chunk: Buffer) => reader.push(chunk));
    this.#socket.on('error', () => this.#options.exit(1));
    this.#socket.on('close', () => this.#options.exit(0));
    const hello: HelloMessage = {
      protocolVersion: PROTOCOL_VERSION,
      pid: process.pid,
      language: `node ${process.versions.node}`,
    };
    this.#send(FRAME_HELLO, hello);
  }

  #send(type: number, message?: object): void {
    this.#socket.write(encodeControlFrame(type, message));
  }

  #onFrame(frame: Frame): void {
    switch (frame.type) {
      case FRAME_EXECUTE:
        this.#waiting.push(decodeExecuteFrame(frame.header, frame.payload[0] ?? EMPTY_PAYLOAD));
        if (this.#runningId === undefined) this.#runWaiting();
        return;
      case FRAME_LOAD:
        void this.#load(JSON.parse(frame.header.toString()) as LoadMessage);
        return;
      case FRAME_START:
        void this.#start(JSON.parse(frame.header.toString()) as StartMessage);
        return;
      case FRAME_CANCEL:
        this.#cancel((JSON.parse(frame.header.toString()) as CancelMessage).batchId);
        return;
      case FRAME_PING:
        this.#send(FRAME_PONG);
        return;
      case FRAME_STOP:
        this.#stop();
        return;
      default:
        this.#log({ level: 'warning', message: `host protocol: unknown frame type ${frame.type} ignored` });
    }
  }

  #log(message: LogMessage): void {
    this.#send(FRAME_LOG, message);
  }

  async #load(message: LoadMessage): Promise<void> {
    // What ps and top show.
    process.title = `nereid-host ${message.placement.name} ${message.modelName}:${message.version}`;
    try {
      const backend = await this.#options.findBackend(message.backend);
      this.#model = await backend.load({
        ...message,
        log: (level, text) => this.#log({ level, message: text }),
      });
      this.#send(FRAME_LOADED, { config: this.#model.config });
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  async #start(message: StartMessage): Promise<void> {
    try {
      if (this.#model === undefined) throw unavailable('host protocol: START before LOAD');
      this.#instance = await this.#model.start(message.config);
      this.#send(FRAME_STARTED);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #fail(thrown: unknown): void {
    const error = StatusError.from(thrown);
    this.#send(FRAME_FAILED, { code: error.code, message: error.message });
  }

  #cancel(batchId: number): void {
    if (batchId === this.#runningId) this.#instance?.cancel(batchId);
    else if (this.#waiting.some((batch) => batch.id === batchId)) this.#cancelled.add(batchId);
  }

  /** Runs waiting batches one after another; synchronous answers need no promise and no extra turn. */
  #runWaiting(): void {
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      this.#runningId = batch.id;
      const reply = this.#execute(batch);
      if (reply instanceof Promise) {
        void this.#finishLater(batch.id, batch.requests.length, reply);
        return;
      }
      this.#respond(batch.id, reply);
    }
    this.#runningId = undefined;
  }

  #execute(batch: ExecuteBatch): ExecuteReply | Promise<ExecuteReply> {
    if (this.#cancelled.delete(batch.id)) {
      return failedReply(batch.requests.length, new StatusError('CANCELLED', ''));
    }
    try {
      if (this.#instance === undefined) throw unavailable('host protocol: EXECUTE before START');
      return this.#instance.execute(batch);
    } catch (thrown) {
      return failedReply(batch.requests.length, StatusError.from(thrown));
    }
  }

  async #finishLater(batchId: number, count: number, pending: Promise<ExecuteReply>): Promise<void> {
    let reply: ExecuteReply;
    try {
      reply = await pending;
    } catch (thrown) {
      reply = failedReply(count, StatusError.from(thrown));
    }
    this.#respond(batchId, reply);
    this.#runWaiting();
  }

  #respond(batchId: number, reply: ExecuteReply): void {
    const parts = encodeResponseFrame(batchId, reply);
    const release = reply.release;
    if (parts.length === 1) {
      // One part means the output bytes were copied into it, so the backend may have its memory back now.
      this.#socket.write(parts[0]!);
      release?.call(reply);
      return;
    }
    this.#socket.cork();
    for (let i = 0; i < parts.length - 1; i++) this.#socket.write(parts[i]!);
    this.#socket.write(parts.at(-1)!, () => release?.call(reply));
    this.#socket.uncork();
  }

  #stop(): void {
    this.#instance?.close();
    this.#instance = undefined;
    this.#socket.end(() => this.#options.exit(0));
  }
}

function failedReply(count: number, error: StatusError): ExecuteReply {
  return {
    results: new Array<StatusError>(count).fill(error),
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
  };
}
