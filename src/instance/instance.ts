// One running copy of a model: a host process under supervision.
//
//   starting ──started──▶ ready ──host ends──▶ restarting ──started──▶ ready
//                           │                      └─ too often ─▶ failed (still tried, ever more slowly)
//                           └──stop──▶ stopped
//
// When the host ends, every batch on it is reported lost at once; the scheduler answers those requests. Nothing
// here knows requests or queues.

import type { InstancePlacement, LogLevel } from '../backend/sdk.ts';
import {
  HOST_PING_INTERVAL_MS,
  HOST_SILENCE_MS_MAX,
  RESTART_ATTEMPTS_MAX,
  RESTART_DELAY_MS_MAX,
  RESTART_DELAY_MS_MIN,
  RESTART_RESET_MS,
} from '../domain/limits.ts';
import type { ModelConfig } from '../domain/model-config.ts';
import { StatusError } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import { NumberTable } from '../lib/number-table.ts';
import type { Admission } from './admission.ts';
import { type CallMessage, encodeCallFrame, type ResultMessage } from './call-frame.ts';
import type { SentRequest } from './execute-frame.ts';
import { ExecuteWatch } from './execute-watch.ts';
import { type HostCommand, HostProcess } from './host-process.ts';
import type { ReceivedPart } from './part-frame.ts';
import { FRAME_RESULT, type LoadMessage } from './protocol.ts';
import type { ReceivedReply } from './response-frame.ts';
import { type WarmupBatch, type WarmupRun, warmupRunOf } from './warmup-batch.ts';

export type { InstancePlacement, LogLevel };

export type InstanceState = 'starting' | 'ready' | 'restarting' | 'failed' | 'stopped';

export interface InstanceEvents {
  onReply(instance: Instance, reply: ReceivedReply): void;
  onPart(instance: Instance, part: ReceivedPart): void;
  /** The host asks something of the server, or takes it back, or wants to be told more slowly. */
  onCall(instance: Instance, call: CallMessage, payload: readonly Buffer[]): void;
  onCallCancel(instance: Instance, callId: number): void;
  onCallFlow(instance: Instance, callId: number, isPaused: boolean): void;
  /** A request given to this instance was cancelled, and so is what it asked for meanwhile. */
  onRequestCancelled(instance: Instance, batchId: number, request: number): void;
  /** What this instance was given and has not answered it will never answer. */
  onLost(instance: Instance, error: StatusError): void;
  onStateChange(instance: Instance): void;
  onLog(instance: Instance, level: LogLevel, message: string): void;
}

export interface InstanceOptions {
  readonly command: HostCommand;
  readonly load: LoadMessage;
  readonly events: InstanceEvents;
  /** Undefined without a rate limiter. */
  readonly admission?: Admission | undefined;
}

/** Batch ids of warm-up runs; real batches count from 1. */
const WARMUP_BATCH_ID = 0;

export class Instance {
  readonly name: string;
  readonly #options: InstanceOptions;
  readonly #events: InstanceEvents;
  readonly #inFlight = new NumberTable<true>();
  readonly #watch: ExecuteWatch | undefined;
  readonly #admission: Admission | undefined;
  #state: InstanceState = 'starting';
  #host: HostProcess | undefined;
  #config: ModelConfig | undefined;
  #warmup: readonly WarmupBatch[] = [];
  #onWarmupReply: ((reply: ReceivedReply | StatusError) => void) | undefined;
  #isRequestInfoWanted = false;
  #launchCount = 0;
  #failedStarts = 0;
  #readySinceMs = 0;
  #pingedAtMs = 0;
  #pingTimer: NodeJS.Timeout | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #restarting: Promise<void> | undefined;
  #lastError: StatusError | undefined;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#events = options.events;
    this.#admission = options.admission;
    this.name = options.load.placement.name;
    const msMax = options.command.executeMsMax;
    if (msMax !== undefined) this.#watch = new ExecuteWatch({ msMax, onLate: () => this.#onLate(msMax) });
  }

  get state(): InstanceState {
    return this.#state;
  }

  get #isStopped(): boolean {
    return this.#state === 'stopped';
  }

  get isAdmitted(): boolean {
    return this.#admission === undefined || this.#admission.ask();
  }

  get inFlightCount(): number {
    return this.#inFlight.size;
  }

  get pid(): number {
    return this.#host?.pid ?? 0;
  }

  /** Why the instance is not ready, for the index and the errors of requests. */
  get lastError(): StatusError | undefined {
    return this.#lastError;
  }

  /** Starts the host and loads the model file; returns the config as the backend completed it. */
  async load(): Promise<ModelConfig> {
    this.#host = await this.#launch();
    // Another instance of the model may have failed meanwhile, and this one was told to end.
    if (this.#state === 'stopped') this.#host.kill('the model is not loaded');
    const loaded = await this.#host.load(this.#options.load);
    this.#isRequestInfoWanted = loaded.isRequestInfoWanted === true;
    return loaded.config;
  }

  /** The backend wants to know more of a request than its tensors. */
  get isRequestInfoWanted(): boolean {
    return this.#isRequestInfoWanted;
  }

  async start(config: ModelConfig, warmup: readonly WarmupBatch[]): Promise<WarmupRun[]> {
    this.#config = config;
    this.#warmup = warmup;
    await this.#host!.start(config);
    const runs = await this.#runWarmup();
    this.#becomeReady();
    return runs;
  }

  execute(batchId: number, requests: readonly SentRequest[]): void {
    this.#admission?.begin();
    this.#inFlight.set(batchId, true);
    this.#watch?.begin();
    try {
      this.#host!.execute(batchId, requests);
    } catch (thrown) {
      // No reply will come that could tell the end.
      this.#inFlight.delete(batchId);
      this.#watch?.end();
      this.#admission?.end();
      throw thrown;
    }
  }

  /** What the model itself says; undefined when it says nothing. */
  askReady(): Promise<boolean> | undefined {
    return this.#host?.askReady();
  }

  /** Nobody waits for this request any more; a hint. */
  cancel(batchId: number, request: number): void {
    if (this.#state !== 'ready') return;
    this.#events.onRequestCancelled(this, batchId, request);
    this.#host?.cancel(batchId, request);
  }

  setPaused(batchId: number, request: number, isPaused: boolean): void {
    if (this.#state === 'ready') this.#host?.setPaused(batchId, request, isPaused);
  }

  /** The answer to a call; dropped when the host has gone. */
  sendResult(message: ResultMessage, data: readonly TensorBytes[]): void {
    if (!this.#isStopped) this.#host?.send(encodeCallFrame(FRAME_RESULT, message, data));
  }

  async stop(): Promise<void> {
    this.#state = 'stopped';
    this.#admission?.leave();
    clearInterval(this.#pingTimer);
    clearTimeout(this.#restartTimer);
    await this.#host?.stop();
    await this.#restarting;
  }

  /** Ends the process without asking; for a server that must exit now. */
  kill(): void {
    this.#state = 'stopped';
    this.#admission?.leave();
    clearTimeout(this.#restartTimer);
    this.#host?.kill('the server ends');
  }

  #launch(): Promise<HostProcess> {
    const launch = ++this.#launchCount;
    return HostProcess.launch(this.#options.command, {
      onReply: (reply) => this.#onReply(reply),
      onPart: (part) => this.#onPart(part),
      onCall: (call, payload) => this.#events.onCall(this, call, payload),
      onCallCancel: ({ callId }) => this.#events.onCallCancel(this, callId),
      onCallFlow: ({ callId, isPaused }) => this.#events.onCallFlow(this, callId, isPaused),
      onLog: (level, message) => this.#events.onLog(this, level, message),
      onExit: (reason) => {
        // The end of a host that has a successor is no news.
        if (launch === this.#launchCount) this.#onExit(reason);
      },
    });
  }

  #onReply(reply: ReceivedReply): void {
    this.#watch?.end();
    if (reply.batchId === WARMUP_BATCH_ID) {
      this.#onWarmupReply?.(reply);
      return;
    }
    this.#inFlight.delete(reply.batchId);
    this.#events.onReply(this, reply);
    this.#admission?.end();
  }

  /** Warm-up requests of decoupled models answer in parts; nobody reads them, only the end of the batch counts. */
  #onPart(part: ReceivedPart): void {
    if (part.batchId !== WARMUP_BATCH_ID) this.#events.onPart(this, part);
  }

  #becomeReady(): void {
    if (this.#isStopped) return;
    this.#state = 'ready';
    this.#readySinceMs = performance.now();
    this.#lastError = undefined;
    clearInterval(this.#pingTimer);
    this.#pingTimer = setInterval(() => this.#checkHealth(), HOST_PING_INTERVAL_MS);
    this.#pingTimer.unref();
    this.#events.onStateChange(this);
  }

  #checkHealth(): void {
    const host = this.#host!;
    const isAnswered = host.lastHeardMs >= this.#pingedAtMs;
    const nowMs = performance.now();
    if (!isAnswered) {
      if (nowMs - host.lastHeardMs > HOST_SILENCE_MS_MAX) {
        host.kill(`did not answer for ${HOST_SILENCE_MS_MAX / 1000} s`);
      }
      return;
    }
    this.#pingedAtMs = nowMs;
    host.ping();
  }

  #onLate(msMax: number): void {
    this.#host?.kill(`did not finish an execution within ${msMax / 1000} s (execute-timeout-secs)`);
  }

  #onExit(reason: string): void {
    clearInterval(this.#pingTimer);
    this.#watch?.reset();
    const error = new StatusError(
      'UNAVAILABLE',
      `instance '${this.name}' of model '${this.#options.load.modelName}' ended unexpectedly: host process ${reason}`,
    );
    this.#onWarmupReply?.(error);
    const wasReady = this.#state === 'ready';
    if (wasReady) {
      if (performance.now() - this.#readySinceMs > RESTART_RESET_MS) this.#failedStarts = 0;
      this.#state = this.#stateAfterEnd();
      this.#lastError = error;
    }
    this.#loseBatches(error);
    // A host that ended on its way has failed the load or restart it belongs to, which tells the reason.
    if (!wasReady) return;
    this.#events.onLog(this, 'error', error.message);
    this.#events.onStateChange(this);
    this.#scheduleRestart();
  }

  /** Requests wait for a host that comes back soon, not for one that has died again and again. */
  #stateAfterEnd(): InstanceState {
    return this.#failedStarts >= RESTART_ATTEMPTS_MAX ? 'failed' : 'restarting';
  }

  #loseBatches(error: StatusError): void {
    this.#inFlight.clear();
    this.#events.onLost(this, error);
    this.#admission?.end();
  }

  #scheduleRestart(): void {
    const delayMs = Math.min(RESTART_DELAY_MS_MIN * 2 ** this.#failedStarts, RESTART_DELAY_MS_MAX);
    this.#failedStarts++;
    this.#restartTimer = setTimeout(() => {
      this.#restarting = this.#restart();
    }, delayMs);
  }

  async #restart(): Promise<void> {
    try {
      this.#host = await this.#launch();
      if (this.#isStopped) return;
      await this.#host.load({ ...this.#options.load, config: this.#config!, isAutoComplete: false });
      await this.#host.start(this.#config!);
      await this.#runWarmup();
      this.#becomeReady();
      this.#events.onLog(this, 'info', `instance '${this.name}' was restarted`);
    } catch (thrown) {
      if (!this.#isStopped) this.#restartFailed(StatusError.from(thrown));
    } finally {
      // A stop that came while the new host was on its way did not know of it.
      if (this.#isStopped) await this.#host?.stop();
    }
  }

  #restartFailed(error: StatusError): void {
    this.#lastError = error;
    this.#host?.kill('could not be restarted');
    this.#events.onLog(this, 'error', `instance '${this.name}' could not be restarted: ${error.message}`);
    this.#state = this.#stateAfterEnd();
    this.#events.onStateChange(this);
    this.#scheduleRestart();
  }

  async #runWarmup(): Promise<WarmupRun[]> {
    const runs: WarmupRun[] = [];
    for (const batch of this.#warmup) {
      const startMs = performance.now();
      const reply = await new Promise<ReceivedReply | StatusError>((resolve) => {
        this.#onWarmupReply = resolve;
        this.#watch?.begin();
        this.#host!.execute(WARMUP_BATCH_ID, batch.requests);
      });
      this.#onWarmupReply = undefined;
      if (reply instanceof StatusError) throw reply;
      const errors = reply.results.filter((result) => result instanceof StatusError);
      if (errors.length > 0) {
        const texts = errors.map((error) => `${error.message}; `).join('');
        throw new StatusError('INVALID_ARG', `failed to run warmup sample '${batch.sample}': ${texts}`);
      }
      runs.push(warmupRunOf(batch, reply, (performance.now() - startMs) * 1e6));
    }
    return runs;
  }
}
