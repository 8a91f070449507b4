// The life of a host process: hello, load, start, then execute until the socket closes. Called by src/host.ts.
// One batch runs at a time; later ones wait in arrival order. When the server goes away, so does the host.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Backend, BackendInstance, BackendModel, ExecuteBatch, ExecuteReply } from '../backend/sdk.ts';
import { StatusError, unavailable } from '../domain/status.ts';
import { NumberTable } from '../lib/number-table.ts';
import type { ResultMessage } from './call-frame.ts';
import { decodeExecuteFrame } from './execute-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { HostCallsClient } from './host-calls-client.ts';
import {
  type CancelMessage,
  encodeControlFrame,
  type FlowMessage,
  FRAME_CANCEL,
  FRAME_EXECUTE,
  FRAME_FAILED,
  FRAME_FLOW,
  FRAME_HELLO,
  FRAME_LOAD,
  FRAME_LOADED,
  FRAME_LOG,
  FRAME_PING,
  FRAME_PONG,
  FRAME_RESULT,
  FRAME_START,
  FRAME_STARTED,
  FRAME_STOP,
  type HelloMessage,
  type LoadMessage,
  type LogMessage,
  PROTOCOL_VERSION,
  type SlotsMessage,
  type StartMessage,
} from './protocol.ts';
import { RequestSenders } from './request-senders.ts';
import { encodeResponseFrame } from './response-frame.ts';
import { type FrameSlot, SharedSlots } from './shared-slots.ts';

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
  readonly #senders: RequestSenders;
  readonly #calls: HostCallsClient;
  readonly #reader = new FrameReader({ isContiguous: true, onFrame: (frame) => this.#onFrame(frame) });
  readonly #waiting: ExecuteBatch[] = [];
  /** By batch that waits or runs: the requests nobody waits for any more. */
  readonly #cancelled = new Map<number, Set<number>>();
  #model: BackendModel | undefined;
  #instance: BackendInstance | undefined;
  #running: ExecuteBatch | undefined;
  #drained: Promise<void> | undefined;
  #isCorked = false;
  #slots: SharedSlots | undefined;
  /** By batch that waits or runs, where the server shares memory. */
  readonly #slotOf = new NumberTable<number>();

  constructor(options: HostOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#calls = new HostCallsClient((parts) => this.#write(parts));
    this.#senders = new RequestSenders({
      write: (parts) => {
        this.#corkTurn();
        this.#write(parts);
      },
      whenDrained: () => {
        if (!this.#socket.writableNeedDrain) return undefined;
        this.#drained ??= once(this.#socket, 'drain').then(() => {
          this.#drained = undefined;
        });
        return this.#drained;
      },
    });
  }

  run(): void {
    this.#socket.on('data', (chunk: Buffer) => this.#reader.push(chunk));
    this.#socket.on('error', () => this.#options.exit(1));
    this.#socket.on('close', () => this.#options.exit(0));
    const hello: HelloMessage = {
      protocolVersion: PROTOCOL_VERSION,
      pid: process.pid,
      language: `node ${process.versions.node}`,
      isSlotUser: true,
    };
    this.#send(FRAME_HELLO, hello);
  }

  #send(type: number, message?: object): void {
    this.#socket.write(encodeControlFrame(type, message));
  }

  #onFrame(frame: Frame): void {
    switch (frame.type) {
      case FRAME_EXECUTE:
        this.#accept(frame);
        return;
      case FRAME_LOAD:
        void this.#load(JSON.parse(frame.header.toString()) as LoadMessage & { slots?: SlotsMessage });
        return;
      case FRAME_START:
        void this.#start(JSON.parse(frame.header.toString()) as StartMessage);
        return;
      case FRAME_CANCEL:
        this.#cancel(JSON.parse(frame.header.toString()) as CancelMessage);
        return;
      case FRAME_FLOW: {
        const { batchId, request, isPaused } = JSON.parse(frame.header.toString()) as FlowMessage;
        this.#senders.setPaused(batchId, request, isPaused);
        return;
      }
      case FRAME_RESULT:
        this.#calls.onResult(
          JSON.parse(frame.header.toString()) as ResultMessage,
          frame.payload[0] ?? EMPTY_PAYLOAD,
        );
        return;
      case FRAME_PING:
        this.#send(FRAME_PONG);
        return;
      case FRAME_STOP:
        void this.#stop();
        return;
      default:
        this.#log({ level: 'warning', message: `host protocol: unknown frame type ${frame.type} ignored` });
    }
  }

  #accept(frame: Frame): void {
    const batch = decodeExecuteFrame(frame.header, frame.payload[0] ?? EMPTY_PAYLOAD);
    if (frame.slot > 0) this.#slotOf.set(batch.id, frame.slot);
    this.#waiting.push(batch);
    if (this.#running === undefined) this.#runWaiting();
  }

  #log(message: LogMessage): void {
    this.#send(FRAME_LOG, message);
  }

  async #load(message: LoadMessage & { slots?: SlotsMessage }): Promise<void> {
    if (message.slots !== undefined) {
      this.#slots = SharedSlots.attach(message.slots.fd, message.slots.slotBytes);
      this.#reader.slots = this.#slots;
    }
    // What ps and top show.
    process.title = `nereid-host ${message.placement.name} ${message.modelName}:${message.version}`;
    try {
      const backend = await this.#options.findBackend(message.backend);
      this.#model = await backend.load({
        ...message,
        log: (level, text) => this.#log({ level, message: text }),
      });
      const { config, isRequestInfoWanted = false } = this.#model;
      this.#send(FRAME_LOADED, { config, isRequestInfoWanted });
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  async #start(message: StartMessage): Promise<void> {
    try {
      if (this.#model === undefined) throw unavailable('host protocol: START before LOAD');
      this.#instance = await this.#model.start(message.config, this.#calls);
      this.#send(FRAME_STARTED);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #fail(thrown: unknown): void {
    const error = StatusError.from(thrown);
    this.#send(FRAME_FAILED, { code: error.code, message: error.message });
  }

  /** A batch is stopped when nobody waits for any of its requests; a sender is told at once. */
  #cancel({ batchId, request }: CancelMessage): void {
    this.#senders.cancel(batchId, request);
    this.#instance?.cancelRequest?.(batchId, request);
    const isRunning = this.#running?.id === batchId;
    const batch = isRunning ? this.#running : this.#waiting.find((waiting) => waiting.id === batchId);
    if (batch === undefined) return;
    const cancelled = this.#cancelled.get(batchId) ?? new Set();
    this.#cancelled.set(batchId, cancelled.add(request));
    if (isRunning && cancelled.size === batch.requests.length && !isStateful(batch)) {
      this.#instance?.cancel(batchId);
    }
  }

  /** Runs waiting batches one after another; synchronous answers need no promise and no extra turn. */
  #runWaiting(): void {
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      this.#running = batch;
      const reply = this.#execute(batch);
      if (reply instanceof Promise) {
        void this.#finishLater(batch, reply);
        return;
      }
      this.#respond(batch, reply);
    }
    this.#running = undefined;
  }

  #execute(batch: ExecuteBatch): ExecuteReply | Promise<ExecuteReply> {
    const { id, requests } = batch;
    const cancelled = this.#cancelled.get(id);
    if (cancelled?.size === requests.length && !isStateful(batch)) {
      return failedReply(requests.length, new StatusError('CANCELLED', ''));
    }
    try {
      if (this.#instance === undefined) throw unavailable('host protocol: EXECUTE before START');
      const reply = this.#instance.execute(batch, (request) => this.#senders.of(id, request));
      // What was cancelled while the batch waited, the backend has not heard of.
      for (const request of cancelled ?? []) this.#instance.cancelRequest?.(id, request);
      return reply;
    } catch (thrown) {
      return failedReply(requests.length, StatusError.from(thrown));
    }
  }

  async #finishLater(batch: ExecuteBatch, pending: Promise<ExecuteReply>): Promise<void> {
    let reply: ExecuteReply;
    try {
      reply = await pending;
    } catch (thrown) {
      reply = failedReply(batch.requests.length, StatusError.from(thrown));
    }
    this.#respond(batch, reply);
    this.#runWaiting();
  }

  #respond(batch: ExecuteBatch, reply: ExecuteReply): void {
    if (this.#cancelled.size > 0) this.#cancelled.delete(batch.id);
    // One part means the output bytes were copied into it, so the backend may have its memory back now.
    const frame = encodeResponseFrame(batch.id, reply, this.#takeSlot(batch.id));
    const isCopied = this.#write(frame, () => reply.release?.());
    if (isCopied) reply.release?.();
  }

  #takeSlot(batchId: number): FrameSlot | undefined {
    const number = this.#slotOf.get(batchId);
    if (number === undefined) return undefined;
    this.#slotOf.delete(batchId);
    return this.#slots?.slot(number);
  }

  /** True when the frame was one part; otherwise `onSent` runs when the last one has left. */
  #write(parts: readonly Buffer[], onSent?: () => void): boolean {
    if (parts.length === 1) {
      this.#socket.write(parts[0]!);
      return true;
    }
    this.#socket.cork();
    for (let i = 0; i < parts.length - 1; i++) this.#socket.write(parts[i]!);
    this.#socket.write(parts.at(-1)!, onSent);
    this.#socket.uncork();
    return false;
  }

  /** What is sent before the event loop's next turn leaves in one write: a step of an LLM answers many requests. */
  #corkTurn(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.#socket.uncork();
    });
  }

  async #stop(): Promise<void> {
    try {
      await this.#instance?.close();
    } catch (thrown) {
      this.#log({ level: 'error', message: StatusError.from(thrown).message });
    }
    this.#instance = undefined;
    this.#socket.end(() => this.#options.exit(0));
  }
}

/** A sequence goes on from the state that each of its requests leaves, so none of them is left out. */
function isStateful(batch: ExecuteBatch): boolean {
  return batch.requests.some((request) => request.state !== undefined);
}

function failedReply(count: number, error: StatusError): ExecuteReply {
  return {
    results: new Array<StatusError>(count).fill(error),
    computeInputNs: 0,
    computeInferNs: 0,
    computeOutputNs: 0,
  };
}
