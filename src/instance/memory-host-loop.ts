// The life of the memory host: hello, then one operation after another until the socket closes. Called by
// src/memory-host.ts. While an operation waits for the socket nothing more is read from it, so what the process
// holds is bounded by one operation each way.

import type { Socket } from 'node:net';
import { SHM_STEP_BYTES_MAX } from '../domain/limits.ts';
import { invalidArgument, StatusError } from '../domain/status.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import {
  encodeMemoryFrame,
  FRAME_MEMORY_CLOSE,
  FRAME_MEMORY_DONE,
  FRAME_MEMORY_OPEN,
  FRAME_MEMORY_READ,
  FRAME_MEMORY_WRITE,
  MEMORY_PROTOCOL_VERSION,
  type MemoryCloseMessage,
  type MemoryDoneMessage,
  type MemoryOpenMessage,
  type MemoryReadMessage,
  type MemoryWriteMessage,
} from './memory-host-protocol.ts';
import {
  encodeControlFrame,
  FRAME_HELLO,
  FRAME_LOG,
  type HelloMessage,
  type LogMessage,
} from './protocol.ts';

/** Memory of a device that another process owns. All calls block, all may throw a StatusError. */
export interface DeviceMemory {
  open(options: Omit<MemoryOpenMessage, 'id'>, handle: Buffer): void;
  close(region: number): void;
  read(region: number, position: number, target: Buffer): void;
  write(region: number, position: number, source: Buffer): void;
  /** False when nothing can work in this process any more. */
  isUsable(): boolean;
}

export interface MemoryHostOptions {
  readonly socket: Socket;
  createMemory(log: (message: LogMessage) => void): DeviceMemory;
  exit(code: number): void;
}

export function runMemoryHost(options: MemoryHostOptions): void {
  new MemoryHostLoop(options).run();
}

const NO_BYTES: Buffer = Buffer.alloc(0);

class MemoryHostLoop {
  readonly #options: MemoryHostOptions;
  readonly #socket: Socket;
  readonly #memory: DeviceMemory;
  readonly #waiting: Frame[] = [];
  /** Every read goes through it; it is free again when its bytes have left. */
  readonly #staging = Buffer.allocUnsafeSlow(SHM_STEP_BYTES_MAX);
  #isRunning = false;

  constructor(options: MemoryHostOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#memory = options.createMemory((message) =>
      this.#socket.write(encodeControlFrame(FRAME_LOG, message)),
    );
  }

  run(): void {
    const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => this.#waiting.push(frame) });
    this.#socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      if (!this.#isRunning && this.#waiting.length > 0) void this.#runWaiting();
    });
    this.#socket.on('error', () => this.#options.exit(1));
    this.#socket.on('close', () => this.#options.exit(0));
    const hello: HelloMessage = {
      protocolVersion: MEMORY_PROTOCOL_VERSION,
      pid: process.pid,
      language: `node ${process.versions.node}`,
    };
    this.#socket.write(encodeControlFrame(FRAME_HELLO, hello));
  }

  async #runWaiting(): Promise<void> {
    this.#isRunning = true;
    this.#socket.pause();
    for (let frame = this.#waiting.shift(); frame !== undefined; frame = this.#waiting.shift()) {
      await this.#answer(frame);
    }
    this.#isRunning = false;
    this.#socket.resume();
  }

  async #answer(frame: Frame): Promise<void> {
    const message = JSON.parse(frame.header.toString()) as { id: number };
    let data = NO_BYTES;
    let done: MemoryDoneMessage = { id: message.id };
    try {
      data = this.#perform(frame, message);
    } catch (thrown) {
      const { code, message: text } = StatusError.from(thrown);
      done = { id: message.id, error: { code, message: text } };
    }
    await this.#send(encodeMemoryFrame(FRAME_MEMORY_DONE, done, data.length === 0 ? [] : [data]));
    if (done.error !== undefined && !this.#memory.isUsable()) this.#giveUp(done.error.message);
  }

  /** The bytes that were read, if any. */
  #perform(frame: Frame, message: object): Buffer {
    const payload = frame.payload[0] ?? NO_BYTES;
    switch (frame.type) {
      case FRAME_MEMORY_OPEN:
        this.#memory.open(message as MemoryOpenMessage, payload);
        return NO_BYTES;
      case FRAME_MEMORY_CLOSE:
        this.#memory.close((message as MemoryCloseMessage).region);
        return NO_BYTES;
      case FRAME_MEMORY_READ: {
        const { region, position, byteLength } = message as MemoryReadMessage;
        if (byteLength > this.#staging.length)
          throw invalidArgument(`cannot read ${byteLength} bytes at once`);
        const target = this.#staging.subarray(0, byteLength);
        this.#memory.read(region, position, target);
        return target;
      }
      case FRAME_MEMORY_WRITE: {
        const { region, position } = message as MemoryWriteMessage;
        this.#memory.write(region, position, payload);
        return NO_BYTES;
      }
      default:
        throw invalidArgument(`memory host protocol: unknown frame type ${frame.type}`);
    }
  }

  /** Until the last byte has left, because the staging buffer is among the parts when the payload is large. */
  #send(parts: readonly Buffer[]): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.cork();
      for (let i = 0; i < parts.length - 1; i++) this.#socket.write(parts[i]!);
      this.#socket.write(parts.at(-1)!, () => resolve());
      this.#socket.uncork();
    });
  }

  /** The server starts a new memory host for the next registration. */
  #giveUp(reason: string): void {
    process.stderr.write(`CUDA cannot go on after: ${reason}\n`);
    this.#options.exit(1);
  }
}
