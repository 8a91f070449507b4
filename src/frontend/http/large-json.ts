// Requests and answers of the v2 protocol that are too large to be parsed or written on the event loop: they go to the thread
// for JSON, where large-json-tasks.ts runs the same wire code. infer-endpoint.ts and generate-endpoint.ts call it.

import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import type {
  DecodedInferRequest,
  DecodeInferRequestOptions,
} from '../../wire/v2-json/decode-infer-request.ts';
import type {
  EncodedInferResponse,
  EncodeInferResponseOptions,
} from '../../wire/v2-json/encode-infer-response.ts';
import type {
  DecodedGenerateRequest,
  DecodeGenerateRequestOptions,
} from '../../wire/v2-json/generate-request.ts';
import { type OutputOptions, optionOf } from '../../wire/v2-json/output-options.ts';
import { type JsonThread, toBuffer } from '../json-thread.ts';

/** A ModelView without its function, for the way to the thread. */
export interface PlainModelView extends Omit<ModelView, 'labelsOf'> {
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

export type JsonTask =
  | {
      readonly kind: 'decode';
      readonly options: Omit<DecodeInferRequestOptions, 'model'> & { readonly model: PlainModelView };
    }
  | {
      readonly kind: 'generate';
      readonly options: Omit<DecodeGenerateRequestOptions, 'model'> & { readonly model: PlainModelView };
    }
  | {
      readonly kind: 'encode';
      readonly response: InferResponse;
      readonly options: Omit<EncodeInferResponseOptions, 'model'> & { readonly model: PlainModelView };
    };

const TASKS = new URL('./large-json-tasks.js', import.meta.url);

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

export async function decodeOnThread(
  thread: JsonThread,
  options: DecodeInferRequestOptions,
): Promise<DecodedInferRequest> {
  const task: JsonTask = { kind: 'decode', options: { ...options, model: plainView(options.model) } };
  // A request's body is nobody else's, so it moves over.
  return withBuffers((await thread.run(TASKS, task, options.body)) as DecodedInferRequest);
}

export async function decodeGenerateOnThread(
  thread: JsonThread,
  options: DecodeGenerateRequestOptions,
): Promise<DecodedGenerateRequest> {
  const task: JsonTask = { kind: 'generate', options: { ...options, model: plainView(options.model) } };
  return withBuffers((await thread.run(TASKS, task, [options.body])) as DecodedGenerateRequest);
}

function withBuffers<T extends DecodedGenerateRequest>(decoded: T): T {
  const inputs = decoded.request.inputs.map((input) => ({ ...input, data: input.data.map(toBuffer) }));
  const idBytes = decoded.idBytes === undefined ? undefined : toBuffer(decoded.idBytes);
  return { ...decoded, idBytes, request: { ...decoded.request, inputs } };
}

export async function encodeOnThread(
  thread: JsonThread,
  response: InferResponse,
  options: EncodeInferResponseOptions,
): Promise<EncodedInferResponse> {
  const task: JsonTask = {
    kind: 'encode',
    response,
    options: { ...options, model: plainView(options.model) },
  };
  // An answer's tensors may share a host's frame, so they are copied.
  const encoded = (await thread.run(TASKS, task, [])) as EncodedInferResponse;
  return { ...encoded, parts: encoded.parts.map(toBuffer) };
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
