// One host process as the server sees it: spawn, handshake, frames out and in, end. It supervises nothing: what
// to do when the process ends is the Instance's decision. Every promise here settles, at the latest when the
// process ends.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex, Readable } from 'node:stream';
import type { LogLevel } from '../backend/sdk.ts';
import { HOST_HELLO_MS_MAX, HOST_LOAD_MS_MAX, HOST_STOP_MS_MAX } from '../domain/limits.ts';
import type { ModelConfig } from '../domain/model-config.ts';
import { StatusError, unavailable } from '../domain/status.ts';
import type { CallCancelMessage, CallFlowMessage, CallMessage } from './call-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { decodePartFrame, type ReceivedPart } from './part-frame.ts';
import {
  encodeControlFrame,
  type FailedMessage,
  FRAME_CALL,
  FRAME_CALL_CANCEL,
  FRAME_CALL_FLOW,
  FRAME_CANCEL,
  FRAME_FAILED,
  FRAME_FLOW,
  FRAME_HELLO,
  FRAME_LOAD,
  FRAME_LOADED,
  FRAME_LOG,
  FRAME_PART,
  FRAME_PING,
  FRAME_RESPONSE,
  FRAME_START,
  FRAME_STARTED,
  FRAME_STOP,
  type HelloMessage,
  type LoadedMessage,
  type LoadMessage,
  type LogMessage,
  PROTOCOL_VERSION,
} from './protocol.ts';
import { decodeResponseFrame, type ReceivedReply } from './response-frame.ts';

/** How to start a host: the command of its language. */
export interface HostCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface HostEvents {
  onReply(reply: ReceivedReply): void;
  onPart(part: ReceivedPart): void;
  /** The host asks something of the server; the payload holds its tensors. */
  onCall(call: CallMessage, payload: readonly Buffer[]): void;
  onCallCancel(message: CallCancelMessage): void;
  onCallFlow(message: CallFlowMessage): void;
  onLog(level: LogLevel, message: string): void;
  /** Called once, after which nothing else is called. */
  onExit(reason: string): void;
}

interface Waiting {
  readonly frameType: number;
  resolve(header: Buffer): void;
  reject(error: StatusError): void;
}

/** What a dying process printed last often is the reason. */
const STDERR_TAIL_CHARS = 400;

export class HostProcess {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #events: HostEvents;
  #waiting: Waiting | undefined;
  #stderrTail = '';
  #exitReason: string | undefined;
  #killReason: string | undefined;
  #onEnded: (() => void) | undefined;
  #stopping: Promise<void> | undefined;
  /** Milliseconds of performance.now() when the last frame came. */
  lastHeardMs = performance.now();

  private constructor(child: ChildProcess, events: HostEvents) {
    this.#child = child;
    this.#events = events;
    this.#socket = child.stdio[3] as Duplex;
  }

  /** Spawns the process and waits for its hello. */
  static async launch(command: HostCommand, events: HostEvents): Promise<HostProcess> {
    const child = spawn(command.file, command.args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...command.env },
      windowsHide: true,
    });
    const host = new HostProcess(child, events);
    host.#attach();
    const header = await host.#expect(FRAME_HELLO, HOST_HELLO_MS_MAX, 'say hello');
    const hello = JSON.parse(header.toString()) as HelloMessage;
    if (hello.protocolVersion !== PROTOCOL_VERSION) {
      host.kill(`host speaks protocol version ${hello.protocolVersion}, the server ${PROTOCOL_VERSION}`);
      throw unavailable(host.#killReason!);
    }
    return host;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async load(message: LoadMessage): Promise<LoadedMessage> {
    const answer = this.#expect(FRAME_LOADED, HOST_LOAD_MS_MAX, 'load the model');
    this.#socket.write(encodeControlFrame(FRAME_LOAD, message));
    return JSON.parse((await answer).toString()) as LoadedMessage;
  }

  async start(config: ModelConfig): Promise<void> {
    const answer = this.#expect(FRAME_STARTED, HOST_LOAD_MS_MAX, 'start the model');
    this.#socket.write(encodeControlFrame(FRAME_START, { config }));
    await answer;
  }

  send(parts: readonly Buffer[]): void {
    if (parts.length === 1) {
      this.#socket.write(parts[0]!);
      return;
    }
    this.#socket.cork();
    for (const part of parts) this.#socket.write(part);
    this.#socket.uncork();
  }

  cancel(batchId: number, request: number): void {
    this.#socket.write(encodeControlFrame(FRAME_CANCEL, { batchId, request }));
  }

  setPaused(batchId: number, request: number, isPaused: boolean): void {
    this.#socket.write(encodeControlFrame(FRAME_FLOW, { batchId, request, isPaused }));
  }

  ping(): void {
    this.#socket.write(encodeControlFrame(FRAME_PING));
  }

  /** Asks the host to end, and ends it if it does not. Resolves when the process is gone, also the second time. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopNow();
    return this.#stopping;
  }

  async #stopNow(): Promise<void> {
    if (this.#exitReason !== undefined) return;
    const ended = new Promise<void>((resolve) => {
      this.#onEnded = resolve;
    });
    this.#socket.write(encodeControlFrame(FRAME_STOP));
    const timer = setTimeout(() => this.kill('did not stop when asked to'), HOST_STOP_MS_MAX);
    await ended;
    clearTimeout(timer);
  }

  kill(reason: string): void {
    this.#killReason ??= reason;
    this.#child.kill('SIGKILL');
  }

  #attach(): void {
    const reader = new FrameReader({ isContiguous: false, onFrame: (frame) => this.#onFrame(frame) });
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (thrown) {
        this.kill(StatusError.from(thrown).message);
      }
    });
    // Write errors always come with the end of the process, which tells the reason.
    this.#socket.on('error', () => {});
    this.#forwardLines(this.#child.stdout!, 'info');
    this.#forwardLines(this.#child.stderr!, 'warning');
    this.#child.on('error', (error) => this.#ended(`could not be started: ${error.message}`));
    this.#child.on('exit', (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by signal ${signal}`;
      this.#ended(this.#killReason === undefined ? how : `${this.#killReason} (${how})`);
    });
  }

  /** What native code or a model prints goes to the log, line by line. */
  #forwardLines(stream: Readable, level: LogLevel): void {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARS);
      const lines = (rest + text).split('\n');
      rest = lines.pop()!.slice(-16_384);
      for (const line of lines) if (line.trim() !== '') this.#events.onLog(level, line);
    });
    stream.on('error', () => {});
  }

  #onFrame(frame: Frame): void {
    this.lastHeardMs = performance.now();
    switch (frame.type) {
      case FRAME_RESPONSE:
        this.#events.onReply(decodeResponseFrame(frame.header, frame.payload));
        return;
      case FRAME_PART:
        this.#events.onPart(decodePartFrame(frame.header, frame.payload));
        return;
      case FRAME_CALL:
        this.#events.onCall(JSON.parse(frame.header.toString()) as CallMessage, frame.payload);
        return;
      case FRAME_CALL_CANCEL:
        this.#events.onCallCancel(JSON.parse(frame.header.toString()) as CallCancelMessage);
        return;
      case FRAME_CALL_FLOW:
        this.#events.onCallFlow(JSON.parse(frame.header.toString()) as CallFlowMessage);
        return;
      case FRAME_LOG: {
        const log = JSON.parse(frame.header.toString()) as LogMessage;
        this.#events.onLog(log.level, log.message);
        return;
      }
      case FRAME_FAILED: {
        const failed = JSON.parse(frame.header.toString()) as FailedMessage;
        this.#settle()?.reject(new StatusError(failed.code, failed.message));
        return;
      }
      default:
        if (this.#waiting?.frameType === frame.type) this.#settle()!.resolve(frame.header);
    }
  }

  #settle(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #expect(frameType: number, limitMs: number, what: string): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#exitReason !== undefined) {
        reject(unavailable(`host process ${this.#exitReason}`));
        return;
      }
      const timer = setTimeout(() => {
        this.kill(`host process did not ${what} within ${limitMs / 1000} s`);
      }, limitMs);
      this.#waiting = {
        frameType,
        resolve: (header) => {
          clearTimeout(timer);
          resolve(header);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
    });
  }

  #ended(reason: string): void {
    if (this.#exitReason !== undefined) return;
    this.#exitReason = reason;
    this.#socket.destroy();
    const tail = this.#stderrTail.trim();
    const waiting = this.#settle();
    waiting?.reject(
      new StatusError('INTERNAL', `host process ${reason}${tail === '' ? '' : `; it printed: ${tail}`}`),
    );
    this.#onEnded?.();
    this.#events.onExit(reason);
  }
}
