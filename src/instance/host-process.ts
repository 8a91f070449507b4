// One host process as the server sees it: spawn, handshake, frames out and in, end. It supervises nothing: what
// to do when the process ends is the Instance's decision. Every promise here settles, at the latest when the
// process ends.

import { type ChildProcess, spawn } from 'node:child_process';
import type { Duplex } from 'node:stream';
import type { LogLevel } from '../backend/sdk.ts';
import { HOST_HELLO_MS_MAX, HOST_LOAD_MS_MAX, HOST_STOP_MS_MAX } from '../domain/limits.ts';
import type { ModelConfig } from '../domain/model-config.ts';
import { StatusError, unavailable } from '../domain/status.ts';
import type { CallCancelMessage, CallFlowMessage, CallMessage } from './call-frame.ts';
import { encodeExecuteFrame, type SentRequest } from './execute-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { HostOutput } from './host-output.ts';
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
  FRAME_READY_ANSWER,
  FRAME_RESPONSE,
  FRAME_START,
  FRAME_STARTED,
  FRAME_STOP,
  type HelloMessage,
  type LoadedMessage,
  type LoadMessage,
  type LogMessage,
  PROTOCOL_VERSION,
  type StartedMessage,
} from './protocol.ts';
import { type ReadyAnswerMessage, ReadyChecks } from './ready-checks.ts';
import { decodeResponseFrame, type ReceivedReply } from './response-frame.ts';
import { SharedSlots, SLOT_BYTES, SlotTable } from './shared-slots.ts';

/** How to start a host: the command of its language. */
export interface HostCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** An execution that takes longer ends the host; undefined: no limit. */
  readonly executeMsMax?: number | undefined;
  /** Adds to an error of the host what a user can do about it. */
  explain?(error: StatusError): StatusError;
}

/** The model that a host is wanted for, as far as the command depends on it. */
export interface HostedModel {
  readonly config: ModelConfig;
  readonly version: number;
  readonly modelDirectory: string;
  /** Settings of the Python backend, those for all backends included. */
  readonly pythonSettings: Readonly<Record<string, string>>;
  /** Tells what takes long, such as the making of an environment. */
  log(message: string): void;
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

/**
 * After the end of the process its last frames and prints are still read. Children of a model may hold its standard
 * output open; they are not waited for.
 */
const LAST_READ_MS_MAX = 100;

/** Beside the socket on 3. */
const SLOTS_FD = 4;

export class HostProcess {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #events: HostEvents;
  readonly #command: HostCommand;
  readonly #output: HostOutput;
  readonly #slots: SharedSlots | undefined;
  /** Undefined when the host does not use shared memory. */
  #slotTable: SlotTable | undefined;
  #readyChecks: ReadyChecks | undefined;
  #waiting: Waiting | undefined;
  #exitReason: string | undefined;
  #killReason: string | undefined;
  #onEnded: (() => void) | undefined;
  #stopping: Promise<void> | undefined;
  /** Milliseconds of performance.now() when the last frame came. */
  lastHeardMs = performance.now();

  private constructor(
    child: ChildProcess,
    command: HostCommand,
    events: HostEvents,
    slots: SharedSlots | undefined,
  ) {
    this.#slots = slots;
    this.#child = child;
    this.#command = command;
    this.#events = events;
    this.#socket = child.stdio[3] as Duplex;
    this.#output = new HostOutput({
      stdout: child.stdout!,
      stderr: child.stderr!,
      onLine: (level, line) => events.onLog(level, line),
    });
  }

  /** Spawns the process and waits for its hello. */
  static async launch(command: HostCommand, events: HostEvents): Promise<HostProcess> {
    const slots = SharedSlots.create();
    const child = spawn(command.file, command.args, {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...(slots === undefined ? [] : [slots.fd])],
      env: { ...process.env, ...command.env },
      windowsHide: true,
    });
    const host = new HostProcess(child, command, events, slots);
    host.#attach();
    const header = await host.#expect(FRAME_HELLO, HOST_HELLO_MS_MAX, 'say hello');
    const hello = JSON.parse(header.toString()) as HelloMessage;
    if (hello.protocolVersion !== PROTOCOL_VERSION) {
      host.kill(`host speaks protocol version ${hello.protocolVersion}, the server ${PROTOCOL_VERSION}`);
      throw unavailable(host.#killReason!);
    }
    if (hello.isSlotUser === true && slots !== undefined) host.#slotTable = new SlotTable(slots);
    return host;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async load(message: LoadMessage): Promise<LoadedMessage> {
    const answer = this.#expect(FRAME_LOADED, HOST_LOAD_MS_MAX, 'load the model');
    const slots = this.#slotTable && { fd: SLOTS_FD, slotBytes: SLOT_BYTES };
    this.#socket.write(encodeControlFrame(FRAME_LOAD, { ...message, slots }));
    return JSON.parse((await answer).toString()) as LoadedMessage;
  }

  async start(config: ModelConfig): Promise<void> {
    const answer = this.#expect(FRAME_STARTED, HOST_LOAD_MS_MAX, 'start the model');
    this.#socket.write(encodeControlFrame(FRAME_START, { config }));
    const header = (await answer).toString();
    const started = (header === '' ? {} : JSON.parse(header)) as StartedMessage;
    if (started.hasReadyCheck === true) {
      this.#readyChecks = new ReadyChecks((frame) => this.#socket.write(frame));
    }
  }

  execute(batchId: number, requests: readonly SentRequest[]): void {
    this.send(encodeExecuteFrame(batchId, requests, this.#slotTable?.take(batchId)));
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

  /** What the model itself says; undefined when it says nothing. */
  askReady(): Promise<boolean> | undefined {
    return this.#readyChecks?.ask();
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
    reader.slots = this.#slots;
    this.#socket.on('data', (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (thrown) {
        this.kill(StatusError.from(thrown).message);
      }
    });
    // Write errors always come with the end of the process, which tells the reason.
    this.#socket.on('error', () => {});
    this.#child.on('error', (error) => this.#ended(`could not be started: ${error.message}`));
    this.#child.on('exit', (code, signal) => {
      const how = signal === null ? `exited with code ${code}` : `was ended by signal ${signal}`;
      const reason = this.#killReason === undefined ? how : `${this.#killReason} (${how})`;
      const timer = setTimeout(() => this.#ended(reason), LAST_READ_MS_MAX);
      this.#child.on('close', () => {
        clearTimeout(timer);
        this.#ended(reason);
      });
      this.#output.end();
    });
  }

  #onFrame(frame: Frame): void {
    this.lastHeardMs = performance.now();
    switch (frame.type) {
      case FRAME_RESPONSE:
        this.#onResponse(frame);
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
      case FRAME_READY_ANSWER:
        this.#readyChecks?.onAnswer(JSON.parse(frame.header.toString()) as ReadyAnswerMessage);
        return;
      case FRAME_LOG: {
        const log = JSON.parse(frame.header.toString()) as LogMessage;
        this.#events.onLog(log.level, log.message);
        return;
      }
      case FRAME_FAILED: {
        const failed = JSON.parse(frame.header.toString()) as FailedMessage;
        const error = new StatusError(failed.code, failed.message);
        this.#settle()?.reject(this.#command.explain?.(error) ?? error);
        return;
      }
      default:
        if (this.#waiting?.frameType === frame.type) this.#settle()!.resolve(frame.header);
    }
  }

  #onResponse({ header, payload, lease }: Frame): void {
    // A host answers what it has read, so this is true unless the next batch is on its way; then nothing is used again.
    const areInputsSent = this.#socket.writableLength === 0;
    const reply = decodeResponseFrame(header, payload, { lease, areInputsSent });
    this.#slotTable?.free(reply.batchId);
    this.#events.onReply(reply);
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
    this.#slots?.close();
    this.#readyChecks?.close();
    const lastWords = this.#output.lastWords();
    this.#output.close();
    const full = lastWords === '' ? reason : `${reason}; it printed: ${lastWords}`;
    this.#settle()?.reject(new StatusError('INTERNAL', `host process ${full}`));
    this.#onEnded?.();
    this.#events.onExit(full);
  }
}
