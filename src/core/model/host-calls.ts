// What one host has asked of the server and not been answered: inference of other models (BLS), load and unload,
// readiness, metrics. One per instance; a host that ends takes its calls with it.

import { HOST_CALLS_MAX } from '../../domain/limits.ts';
import { internal, StatusError, unavailable } from '../../domain/status.ts';
import type { TensorBytes } from '../../domain/tensor.ts';
import {
  type CallMessage,
  fromCallParameters,
  type InferCallMessage,
  type LoadCallMessage,
  type ResultMessage,
} from '../../instance/call-frame.ts';
import { slicePieces } from '../../instance/result-codec.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import type { InferCall, InferTarget } from '../infer.ts';
import type { LoadOverride } from '../repository/find-model.ts';
import type { MetricsRegistry } from '../stats/metrics-registry.ts';
import { HostCallSink } from './host-call-sink.ts';
import { HostMetrics } from './host-metrics.ts';

/** What calls of hosts need of the server. */
export interface HostServices {
  infer(target: InferTarget, call: InferCall): void;
  isDecoupled(target: InferTarget): boolean;
  load(model: string, override: LoadOverride): Promise<void>;
  unload(model: string): Promise<void>;
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
  ancestorsOf(parent: { batchId: number; request: number }): readonly object[];
}

interface OpenCall {
  readonly cancellation: Cancellation;
  readonly sink: HostCallSink;
  /** `batch:request` of the request during which it was made. */
  readonly parent: string;
}

const NOT_DECOUPLED =
  "Model is using the decoupled mode. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'";

export class HostCalls {
  readonly #options: HostCallsOptions;
  readonly #open = new Map<number, OpenCall>();
  readonly #metrics: HostMetrics;

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

  /** The client of the request during which calls were made has gone. */
  onRequestCancelled(batchId: number, request: number): void {
    const parent = `${batchId}:${request}`;
    for (const open of [...this.#open.values()]) if (open.parent === parent) open.cancellation.cancel();
  }

  /** The host has gone. */
  close(): void {
    const open = [...this.#open.values()];
    this.#open.clear();
    for (const { cancellation } of open) cancellation.cancel();
    this.#metrics.close();
  }

  #infer(callId: number, call: InferCallMessage, payload: readonly Buffer[]): void {
    const { services, instance } = this.#options;
    const cancellation = new Cancellation();
    const sink = new HostCallSink(callId, {
      sendResult: (message, data) => {
        if (this.#open.has(callId)) this.#options.sendResult(message, data);
      },
      onEnd: () => this.#open.delete(callId),
    });
    const parent = call.parent === undefined ? '' : `${call.parent.batchId}:${call.parent.request}`;
    const isTooMany = this.#open.size >= HOST_CALLS_MAX;
    this.#open.set(callId, { cancellation, sink, parent });
    try {
      if (isTooMany) throw unavailable(`the model has ${HOST_CALLS_MAX} calls of other models open`);
      const target = { model: call.model, version: call.version };
      if (!call.isStream && services.isDecoupled(target)) throw internal(NOT_DECOUPLED);
      const ancestors = call.parent === undefined ? [] : this.#options.ancestorsOf(call.parent);
      services.infer(target, {
        request: toRequest(call, payload),
        sink,
        cancellation,
        trace: undefined,
        ancestors: [...ancestors, instance],
      });
    } catch (thrown) {
      sink.fail(StatusError.from(thrown));
    }
  }

  #answer(callId: number, act: () => boolean | number): void {
    try {
      this.#options.sendResult({ callId, isFinal: true, value: act() }, []);
    } catch (thrown) {
      this.#fail(callId, thrown);
    }
  }

  async #control(
    callId: number,
    call: Extract<CallMessage, { kind: 'load' | 'unload' }>,
    payload: readonly Buffer[],
  ): Promise<void> {
    const { services } = this.#options;
    try {
      if (call.kind === 'load') await services.load(call.model, toOverride(call, payload));
      else await services.unload(call.model);
      this.#options.sendResult({ callId, isFinal: true }, []);
    } catch (thrown) {
      this.#fail(callId, thrown);
    }
  }

  #fail(callId: number, thrown: unknown): void {
    const { code, message } = StatusError.from(thrown);
    this.#options.sendResult({ callId, isFinal: true, error: { code, message } }, []);
  }
}

function toRequest(call: InferCallMessage, payload: readonly Buffer[]): InferCall['request'] {
  return {
    id: call.id,
    inputs: call.inputs.map(({ name, datatype, shape, offset, byteLength }) => ({
      name,
      datatype,
      shape,
      data: slicePieces(payload, offset, byteLength),
      byteLength,
    })),
    requestedOutputs: [...new Set(call.requestedOutputs)],
    parameters: fromCallParameters(call.parameters),
    correlationId: typeof call.correlationId === 'number' ? BigInt(call.correlationId) : call.correlationId,
    sequenceFlags: call.flags,
    priority: call.priority,
    timeoutUs: call.timeoutUs,
    isRaw: false,
  };
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
