// What one instance's host has asked of the server and not been answered: inference of other models (BLS), load and
// unload, readiness, metrics. One per instance; a host that ends takes its calls with it, and results that come
// later never reach the host after it.

import { HOST_CALLS_MAX } from '../../domain/limits.ts';
import { internal, invalidArgument, StatusError, unavailable } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import {
  type CallMessage,
  fromCallParameters,
  type InferCallMessage,
  type LoadCallMessage,
  NO_RESULT,
  type ParentRequest,
  type ResultMessage,
} from '../../instance/call-frame.ts';
import { slicePieces } from '../../instance/result-codec.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import { NumberTable } from '../../lib/number-table.ts';
import type { InferCall, InferTarget } from '../infer.ts';
import type { LoadOverride } from '../repository/find-model.ts';
import type { MetricsRegistry } from '../stats/metrics-registry.ts';
import { HostCallSink } from './host-call-sink.ts';
import { HostMetrics } from './host-metrics.ts';

/** What calls of hosts need of the server. */
export interface HostServices {
  infer(target: InferTarget, call: InferCall): void;
  /** Throws when the model cannot be asked. */
  isDecoupled(target: InferTarget): boolean;
  load(model: string, override: LoadOverride): Promise<void>;
  /** `isDependents`: also what was loaded only because the model needs it. */
  unload(model: string, isDependents: boolean): Promise<void>;
  /** Version as text; empty for the newest. */
  isModelReady(model: string, version: string): boolean;
  readonly registry: MetricsRegistry;
}

export interface HostCallsOptions {
  readonly services: HostServices;
  /** The instance whose host calls; calls that would wait for it are refused. */
  readonly instance: object;
  sendResult(message: ResultMessage, data: readonly TensorBytes[]): void;
  /** The instances that wait, directly or not, for the request during which a call is made. */
  ancestorsOf(parent: ParentRequest): readonly object[];
}

interface OpenCall {
  readonly cancellation: Cancellation;
  readonly sink: HostCallSink;
  /** `batch:request` of the requests during which it was made and whose clients still wait. */
  readonly parents: Set<string>;
}

type ControlCall = Extract<CallMessage, { kind: 'load' | 'unload' }>;

export class HostCalls {
  readonly #options: HostCallsOptions;
  readonly #open = new NumberTable<OpenCall>();
  readonly #metrics: HostMetrics;
  /** Hosts count their calls anew, so a late result must know which host it is for. */
  #hostNumber = 0;

  constructor(options: HostCallsOptions) {
    this.#options = options;
    this.#metrics = new HostMetrics(options.services.registry);
  }

  onCall(call: CallMessage, payload: readonly Buffer[]): void {
    const { callId } = call;
    switch (call.kind) {
      case 'infer':
        this.#infer(callId, call, payload);
        return;
      case 'metric':
        this.#answer(callId, () => this.#metrics.act(call));
        return;
      case 'metrics':
        for (const one of call.calls) this.#answer(NO_RESULT, () => this.#metrics.act(one));
        return;
      case 'ready':
        this.#answer(callId, () => this.#options.services.isModelReady(call.model, call.version));
        return;
      default:
        void this.#control(callId, call, payload);
    }
  }

  onCancel(callId: number): void {
    this.#open.get(callId)?.cancellation.cancel();
  }

  onFlow(callId: number, isPaused: boolean): void {
    this.#open.get(callId)?.sink.setPaused(isPaused);
  }

  /** The client of a request during which calls were made has gone. */
  onRequestCancelled(batchId: number, request: number): void {
    const parent = keyOf({ batchId, request });
    for (const { parents, cancellation } of this.#open.values()) {
      if (parents.delete(parent) && parents.size === 0) cancellation.cancel();
    }
  }

  /** The host has gone. */
  close(): void {
    const open = this.#open.values();
    this.#open.clear();
    this.#hostNumber++;
    for (const { cancellation } of open) cancellation.cancel();
    this.#metrics.close();
  }

  #infer(callId: number, call: InferCallMessage, payload: readonly Buffer[]): void {
    const cancellation = new Cancellation();
    const isOpen = () => this.#open.get(callId)?.cancellation === cancellation;
    const sink = new HostCallSink(callId, {
      sendResult: (message, data) => {
        if (isOpen()) this.#options.sendResult(message, data);
      },
      onEnd: () => {
        if (isOpen()) this.#open.delete(callId);
      },
    });
    const isTooMany = this.#open.size >= HOST_CALLS_MAX;
    this.#open.set(callId, { cancellation, sink, parents: new Set(parentsOf(call).map(keyOf)) });
    try {
      if (isTooMany) throw unavailable(`the model has ${HOST_CALLS_MAX} calls of other models open`);
      this.#begin(call, { request: toRequest(call, payload), sink, cancellation });
    } catch (thrown) {
      // Triton gives every refusal this beginning and this code.
      const { message } = StatusError.from(thrown);
      sink.fail(internal(`Model ${call.model} - Error when running inference: ${message}`));
    }
  }

  /** Throws when the call is refused. */
  #begin(call: InferCallMessage, begun: Pick<InferCall, 'request' | 'sink' | 'cancellation'>): void {
    const { services, instance, ancestorsOf } = this.#options;
    const target = { model: call.model, version: call.version };
    if (this.#isDecoupled(target) && !call.isStream) {
      throw internal(
        `Model ${call.model} is using the decoupled. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'`,
      );
    }
    const ancestors = new Set([...parentsOf(call).flatMap(ancestorsOf), instance]);
    services.infer(target, { ...begun, trace: undefined, ancestors: [...ancestors] });
  }

  #isDecoupled(target: InferTarget): boolean {
    try {
      return this.#options.services.isDecoupled(target);
    } catch {
      throw internal(`Failed for execute the inference request. Model '${target.model}' is not ready.`);
    }
  }

  #answer(callId: number, act: () => boolean | number): void {
    try {
      const value = act();
      if (callId !== NO_RESULT) this.#options.sendResult({ callId, isFinal: true, value }, []);
    } catch (thrown) {
      if (callId !== NO_RESULT) this.#fail(callId, thrown);
    }
  }

  async #control(callId: number, call: ControlCall, payload: readonly Buffer[]): Promise<void> {
    const { services, sendResult } = this.#options;
    const hostNumber = this.#hostNumber;
    try {
      if (call.kind === 'load') await services.load(call.model, toOverride(call, payload));
      else await services.unload(call.model, call.isDependents);
      if (hostNumber === this.#hostNumber) sendResult({ callId, isFinal: true }, []);
    } catch (thrown) {
      if (hostNumber === this.#hostNumber) this.#fail(callId, thrown);
    }
  }

  #fail(callId: number, thrown: unknown): void {
    const { code, message } = StatusError.from(thrown);
    this.#options.sendResult({ callId, isFinal: true, error: { code, message } }, []);
  }
}

function parentsOf({ parent }: InferCallMessage): readonly ParentRequest[] {
  if (parent === undefined) return [];
  return 'batchId' in parent ? [parent] : parent;
}

function keyOf({ batchId, request }: ParentRequest): string {
  return `${batchId}:${request}`;
}

function toRequest(call: InferCallMessage, payload: readonly Buffer[]): InferCall['request'] {
  const { correlationId, id } = call;
  const names = new Set<string>();
  for (const { name } of call.inputs) {
    if (names.has(name)) {
      const shownId = id === '' ? '<id_unknown>' : id;
      throw invalidArgument(`[request id: ${shownId}] input '${name}' already exists in request`);
    }
    names.add(name);
  }
  const timeoutUs = BigInt(call.timeoutUs);
  return {
    id,
    inputs: call.inputs.map(({ name, datatype, shape, offset, byteLength }) => ({
      name,
      datatype,
      shape,
      data: slicePieces(payload, offset, byteLength),
      byteLength,
    })),
    requestedOutputs: [...new Set(call.requestedOutputs)],
    parameters: fromCallParameters(call.parameters),
    correlationId: toCorrelationId(correlationId),
    sequenceFlags: call.flags,
    priority: call.priority,
    timeoutUs: timeoutUs <= Number.MAX_SAFE_INTEGER ? Number(timeoutUs) : timeoutUs,
    isRaw: false,
  };
}

function toCorrelationId(sent: InferCallMessage['correlationId']): bigint | string {
  if (typeof sent === 'string') return sent;
  return BigInt(typeof sent === 'number' ? sent : sent.uint64);
}

function toOverride(call: LoadCallMessage, payload: readonly Buffer[]): LoadOverride {
  return {
    configJson: call.config === '' ? undefined : call.config,
    files: call.files.map(({ path, offset, byteLength }) => ({
      path,
      content: Buffer.concat(slicePieces(payload, offset, byteLength)),
    })),
  };
}
