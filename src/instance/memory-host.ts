// The memory host as the server sees it: spawn, hello, operations in and answers out, end. core/shm/cuda-memory.ts
// starts it and decides what its end means. Every promise here settles, at the latest when the process ends, and a
// process that keeps an operation waiting is ended.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex, Readable } from 'node:stream';
import type { LogLevel } from '../backend/sdk.ts';
import { HOST_SILENCE_MS_MAX, HOST_STOP_MS_MAX } from '../domain/limits.ts';
import { StatusError, unavailable } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import type { HostCommand } from './host-process.ts';
import {
  encodeMemoryFrame,
  FRAME_MEMORY_CLOSE,
  FRAME_MEMORY_DONE,
  FRAME_MEMORY_OPEN,
  FRAME_MEMORY_READ,
  FRAME_MEMORY_WRITE,
  MEMORY_PROTOCOL_VERSION,
  type MemoryDoneMessage,
  type MemoryOpenMessage,
} from './memory-host-protocol.ts';
import { FRAME_HELLO, FRAME_LOG, type HelloMessage, type LogMessage } from './protocol.ts';

export interface MemoryHostEvents {
  onLog(level: LogLevel, message: string): void;
  /** Called once, after which nothing else is called. All operations have failed by then. */
  onExit(reason: string): void;
}

interface Waiting {
  resolve(payload: TensorBytes): void;
  reject(error: StatusError): void;
}

/** The hello is waited for like an answer; operations count from 1. */
const HELLO_ID = 0;
/** A line of a process that prints without end. */
const LINE_CHARS_MAX = 16_384;

export class MemoryHost {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #events: MemoryHostEvents;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #onEnded: () => void = () => {};
  #lastId = HELLO_ID;
  #lastRegion = 0;
  #silence: NodeJS.Timeout | undefined;
  #killReason: string | undefined;
  #exitReason: string | undefined;

  private constructor(child: ChildProcess, events: MemoryHostEvents) {
    this.#child = child;
    this.#events = events;
    this.#socket = child.stdio[3] as Duplex;
    this.#ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    this.#attach();
  }

  /** Spawns the process and waits for its hello. `onExit` is called only if there was a process. */
  static async launch(command: HostCommand, events: MemoryHostEvents): Promise<MemoryHost> {
    const child = spawn(command.file, command.args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...command.env },
      windowsHide: true,
    });
    if (child.pid === undefined) {
      // It may not even have its streams, when the server has no file descriptor left.
      const [error] = (await once(child, 'error')) as [Error];
      throw endedError(`could not be started: ${error.message}`);
    }
    const host = new MemoryHost(child, events);
    await host.#answerTo(HELLO_ID);
    return host;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isEnded(): boolean {
    return this.#exitReason !== undefined;
  }

  /** The number by which the region is called from then on. */
  async open(options: Omit<MemoryOpenMessage, 'id' | 'region'>, handle: Buffer): Promise<number> {
    this.#lastRegion++;
    const region = this.#lastRegion;
    await this.#ask(FRAME_MEMORY_OPEN, { ...options, region }, [handle]);
    return region;
  }

  async close(region: number): Promise<void> {
    await this.#ask(FRAME_MEMORY_CLOSE, { region });
  }

  /** At most SHM_STEP_BYTES_MAX at once. */
  read(range: { region: number; position: number; byteLength: number }): Promise<TensorBytes> {
    return this.#ask(FRAME_MEMORY_READ, range);
  }

  /** In steps like `read`; the views must not change until it is done. */
  async write(range: { region: number; position: number }, data: TensorBytes): Promise<void> {
    await this.#ask(FRAME_MEMORY_WRITE, range, data);
  }

  /** Lets the process end, and ends it if it does not. Resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.isEnded) return;
    this.#socket.end();
    const timer = setTimeout(() => this.kill('did not stop when asked to'), HOST_STOP_MS_MAX);
    await this.#ended;
    clearTimeout(timer);
  }

  kill(reason: string): void {
    this.#killReason ??= reason;
    this.#child.kill('SIGKILL');
  }

  #ask(type: number, fields: { readonly region: number }, payload: TensorBytes = []): Promise<TensorBytes> {
    this.#lastId++;
    const message = { id: this.#lastId, ...fields };
    const answer = this.#answerTo(message.id);
    this.#socket.cork();
    for (const part of encodeMemoryFrame(type, message, payload)) this.#socket.write(part);
    this.#socket.uncork();
    return answer;
  }

  #answerTo(id: number): Promise<TensorBytes> {
    if (this.#exitReason !== undefined) return Promise.reject(endedError(this.#exitReason));
    this.#silence ??= setTimeout(() => {
      this.kill(`did not answer within ${HOST_SILENCE_MS_MAX / 1000} s`);
    }, HOST_SILENCE_MS_MAX);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Answers come in order and each is bounded in its work, so the time starts anew with every one. */
  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size > 0) {
      this.#silence?.refresh();
    } else {
      clearTimeout(this.#silence);
      this.#silence = undefined;
    }
    return waiting;
  }

  #attach(): void {
    const reader = new FrameReader({ isContiguous: false, onFrame: (frame) => this.#onFrame(frame) });
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (thrown) {
        this.kill(`broke off: ${StatusError.from(thrown).message}`);
      }
    });
    // Write errors always come with the end of the process, which tells the reason.
    this.#socket.on('error', () => {});
    this.#forwardLines(this.#child.stdout!, 'info');
    this.#forwardLines(this.#child.stderr!, 'warning');
    this.#child.on('error', (error) => this.#events.onLog('warning', `memory host: ${error.message}`));
    this.#child.on('exit', (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by signal ${signal}`;
      this.#end(this.#killReason === undefined ? how : `${this.#killReason} (${how})`);
    });
  }

  /** What the driver prints goes to the log, line by line. */
  #forwardLines(stream: Readable, level: LogLevel): void {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!.slice(-LINE_CHARS_MAX);
      for (const line of lines) if (line.trim() !== '') this.#events.onLog(level, line);
    });
    stream.on('error', () => {});
  }

  #onFrame(frame: Frame): void {
    switch (frame.type) {
      case FRAME_MEMORY_DONE: {
        const { id, error } = JSON.parse(frame.header.toString()) as MemoryDoneMessage;
        const waiting = this.#settle(id);
        if (error === undefined) waiting?.resolve(frame.payload);
        else waiting?.reject(new StatusError(error.code, error.message));
        return;
      }
      case FRAME_LOG: {
        const log = JSON.parse(frame.header.toString()) as LogMessage;
        this.#events.onLog(log.level, log.message);
        return;
      }
      case FRAME_HELLO: {
        const { protocolVersion } = JSON.parse(frame.header.toString()) as HelloMessage;
        if (protocolVersion === MEMORY_PROTOCOL_VERSION) this.#settle(HELLO_ID)?.resolve([]);
        else this.kill(`speaks protocol version ${protocolVersion}, the server ${MEMORY_PROTOCOL_VERSION}`);
      }
    }
  }

  #end(reason: string): void {
    if (this.#exitReason !== undefined) return;
    this.#exitReason = reason;
    clearTimeout(this.#silence);
    this.#socket.destroy();
    for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(endedError(reason));
    this.#onEnded();
    this.#events.onExit(reason);
  }
}

function endedError(reason: string): StatusError {
  return unavailable(`the memory host ${reason}`);
}
