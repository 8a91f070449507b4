// Large JSON is parsed and written on a thread of its own, so that a body of many megabytes never holds up the
// other requests. The thread starts with the first such request; wire code is pure, so both sides run the same.

import { Worker } from 'node:worker_threads';
import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import { type StatusCode, StatusError, unavailable } from '../../domain/status.ts';
import type {
  DecodedInferRequest,
  DecodeInferRequestOptions,
} from '../../wire/v2-json/decode-infer-request.ts';
import type {
  EncodedInferResponse,
  EncodeInferResponseOptions,
} from '../../wire/v2-json/encode-infer-response.ts';
import { type OutputOptions, optionOf } from '../../wire/v2-json/output-options.ts';

/** A ModelView without its function, for the way to the thread. */
export interface PlainModelView extends Omit<ModelView, 'labelsOf'> {
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

export type JsonTask =
  | {
      readonly kind: 'decode';
      readonly id: number;
      readonly options: Omit<DecodeInferRequestOptions, 'model'> & { readonly model: PlainModelView };
    }
  | {
      readonly kind: 'encode';
      readonly id: number;
      readonly response: InferResponse;
      readonly options: Omit<EncodeInferResponseOptions, 'model'> & { readonly model: PlainModelView };
    };

export type JsonTaskResult =
  | { readonly id: number; readonly isOk: true; readonly value: unknown }
  | { readonly id: number; readonly isOk: false; readonly code: StatusCode; readonly message: string };

/** An element of JSON text is a few times its binary size, so a quarter of the bound is counted in elements. */
const ANSWER_BYTES_MAX = JSON_INLINE_BYTES_MAX / 4;

export function isLargeJsonAnswer(response: InferResponse, outputs: OutputOptions): boolean {
  let bytes = 0;
  for (const output of response.outputs) bytes += output.byteLength;
  if (bytes <= ANSWER_BYTES_MAX) return false;
  bytes = 0;
  for (const output of response.outputs) {
    const option = optionOf(outputs, output.name);
    if (!option.isBinary || option.classCount > 0) bytes += output.byteLength;
  }
  return bytes > ANSWER_BYTES_MAX;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: StatusError): void;
}

export class JsonThread {
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #nextId = 1;

  async decode(options: DecodeInferRequestOptions): Promise<DecodedInferRequest> {
    const plain = { ...options, model: plainView(options.model) };
    const task: JsonTask = { kind: 'decode', id: this.#nextId++, options: plain };
    const decoded = (await this.#run(task)) as DecodedInferRequest;
    const inputs = decoded.request.inputs.map((input) => ({ ...input, data: input.data.map(toBuffer) }));
    const idBytes = decoded.idBytes === undefined ? undefined : toBuffer(decoded.idBytes);
    return { ...decoded, idBytes, request: { ...decoded.request, inputs } };
  }

  async encode(response: InferResponse, options: EncodeInferResponseOptions): Promise<EncodedInferResponse> {
    const plain = { ...options, model: plainView(options.model) };
    const task: JsonTask = { kind: 'encode', id: this.#nextId++, response, options: plain };
    const encoded = (await this.#run(task)) as EncodedInferResponse;
    return { ...encoded, parts: encoded.parts.map(toBuffer) };
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #run(task: JsonTask): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#pending.set(task.id, { resolve, reject });
      // A request's body is nobody else's, so it moves over; an answer's tensors may share a host's frame.
      const moved = task.kind === 'decode' ? ownedBuffers(task.options.body) : [];
      this.#ensureWorker().postMessage(task, moved);
    });
  }

  #ensureWorker(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(new URL('./json-thread-worker.js', import.meta.url));
    worker.unref();
    worker.on('message', (result: JsonTaskResult) => {
      const pending = this.#pending.get(result.id);
      this.#pending.delete(result.id);
      if (result.isOk) pending?.resolve(result.value);
      else pending?.reject(new StatusError(result.code, result.message));
    });
    worker.on('error', (error) => this.#lose(worker, error.message));
    worker.on('exit', () => this.#lose(worker, 'it ended'));
    this.#worker = worker;
    return worker;
  }

  /** The thread died (out of memory): its tasks fail, the next one starts a new thread. */
  #lose(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const pending of lost) pending.reject(unavailable(`the thread for large JSON failed: ${reason}`));
  }
}

/** The memory of buffers that are all of it, which can be moved to another thread instead of being copied. */
export function ownedBuffers(buffers: readonly Uint8Array[]): ArrayBuffer[] {
  const owned = new Set<ArrayBuffer>();
  for (const { buffer, byteLength } of buffers) {
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) owned.add(buffer);
  }
  return [...owned];
}

/** Structured clone turns a Buffer into a Uint8Array. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function plainView(model: ModelView): PlainModelView {
  const labels = new Map<string, readonly string[]>();
  for (const output of model.outputs) {
    const list = model.labelsOf(output.name);
    if (list !== undefined) labels.set(output.name, list);
  }
  const { name, version, maxBatchSize, inputs, outputs, isDecoupled } = model;
  return { name, version, maxBatchSize, inputs, outputs, isDecoupled, labels };
}
