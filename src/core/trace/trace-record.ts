// One sampled request and what it causes, while it runs: every mark is kept in order and handed over once, when the
// frontend has ended it. Made by trace-control.ts; what becomes of a finished trace is not known here.

import { randomBytes } from 'node:crypto';
import type { InferRequest, InferResponse } from '../../domain/request.ts';
import type { RequestTrace, TraceActivity } from '../../domain/request-trace.ts';
import type { InputTensor, OutputTensor } from '../../domain/tensor.ts';
import { tensorText } from './tensor-text.ts';

const SPAN_ID_BYTES = 8;

export interface TracedTensor {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  readonly text: string;
}

export type TraceEntry =
  | { readonly activity: TraceActivity; readonly atMs: number }
  | {
      readonly activity: 'TENSOR_QUEUE_INPUT' | 'TENSOR_BACKEND_OUTPUT';
      readonly tensor: TracedTensor;
    };

/** One model's part of a trace. */
export interface TraceRecord {
  readonly id: number;
  /** 0 for the request of the client. */
  readonly parentId: number;
  /** Undefined when the request failed before a model took it. */
  readonly model: { readonly name: string; readonly version: number } | undefined;
  readonly requestId: string;
  readonly entries: readonly TraceEntry[];
  /** Of the span of its computation, where somebody was told of it beforehand. */
  readonly computeSpanId: string | undefined;
}

/** The first record is the client's request, the others are its children in the order of their ids. */
export type FinishedTrace = readonly TraceRecord[];

export interface TraceRecorderOptions {
  readonly hasTimestamps: boolean;
  readonly hasTensors: boolean;
  /** 32 hexadecimal digits; undefined where traces are not spans. */
  readonly traceId: string | undefined;
  nextId(): number;
  onFinished(trace: FinishedTrace): void;
}

/** What the records of one trace share. */
interface TraceGroup extends TraceRecorderOptions {
  readonly records: RecordingTrace[];
  isEnded: boolean;
}

export function startRecording(options: TraceRecorderOptions): RequestTrace {
  const group: TraceGroup = { ...options, records: [], isEnded: false };
  return new RecordingTrace(group, 0);
}

class RecordingTrace implements RequestTrace, TraceRecord {
  readonly #group: TraceGroup;
  readonly id: number;
  readonly parentId: number;
  readonly entries: TraceEntry[] = [];
  model: { readonly name: string; readonly version: number } | undefined;
  requestId = '';
  computeSpanId: string | undefined;
  /** Until the request is queued, when Triton reports them. */
  #inputs: readonly InputTensor[] = [];

  constructor(group: TraceGroup, parentId: number) {
    this.#group = group;
    this.id = group.nextId();
    this.parentId = parentId;
    group.records.push(this);
  }

  mark(activity: TraceActivity, atMs: number = performance.now()): void {
    if (this.#group.hasTimestamps) this.entries.push({ activity, atMs });
    if (activity === 'QUEUE_START') this.#reportInputs();
  }

  begin(model: { readonly name: string; readonly version: number }, request: InferRequest): void {
    this.model = { name: model.name, version: model.version };
    this.requestId = request.id;
    if (this.#group.hasTensors) this.#inputs = request.inputs;
  }

  #reportInputs(): void {
    for (const input of this.#inputs) this.#addTensor('TENSOR_QUEUE_INPUT', input);
    this.#inputs = [];
  }

  response(response: InferResponse): void {
    if (!this.#group.hasTensors) return;
    for (const output of response.outputs) this.#addTensor('TENSOR_BACKEND_OUTPUT', output);
  }

  /** The text is made at once: the bytes may lie in shared memory, which the client will write again. */
  #addTensor(
    activity: 'TENSOR_QUEUE_INPUT' | 'TENSOR_BACKEND_OUTPUT',
    tensor: InputTensor | OutputTensor,
  ): void {
    const { name, datatype, shape } = tensor;
    this.entries.push({ activity, tensor: { name, datatype, shape, text: tensorText(tensor) } });
  }

  traceparent(): string | undefined {
    const { traceId } = this.#group;
    if (traceId === undefined) return undefined;
    this.computeSpanId ??= randomBytes(SPAN_ID_BYTES).toString('hex');
    return `00-${traceId}-${this.computeSpanId}-01`;
  }

  child(): RequestTrace {
    return new RecordingTrace(this.#group, this.id);
  }

  end(): void {
    const group = this.#group;
    if (this.parentId !== 0 || group.isEnded) return;
    group.isEnded = true;
    // The core may mark REQUEST_END only after the answer that ends the trace has been sent.
    setImmediate(() => group.onFinished(group.records));
  }
}
