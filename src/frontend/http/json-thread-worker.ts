// The thread behind json-thread.ts: runs wire code on large bodies and sends the result back.

import { parentPort } from 'node:worker_threads';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { decodeInferRequest } from '../../wire/v2-json/decode-infer-request.ts';
import { encodeInferResponse } from '../../wire/v2-json/encode-infer-response.ts';
import {
  type JsonTask,
  type JsonTaskResult,
  ownedBuffers,
  type PlainModelView,
  toBuffer,
} from './json-thread.ts';

parentPort?.on('message', (task: JsonTask) => {
  const { result, made } = resultOf(task);
  parentPort?.postMessage(result, ownedBuffers(made));
});

/** `made` are the buffers in the result. */
interface Outcome {
  readonly result: JsonTaskResult;
  readonly made: readonly Buffer[];
}

function resultOf(task: JsonTask): Outcome {
  try {
    const { value, made } = run(task);
    return { result: { id: task.id, isOk: true, value }, made };
  } catch (thrown) {
    const error = StatusError.from(thrown);
    return { result: { id: task.id, isOk: false, code: error.code, message: error.message }, made: [] };
  }
}

function run(task: JsonTask): { value: unknown; made: readonly Buffer[] } {
  const model = toView(task.options.model);
  if (task.kind === 'decode') {
    const body = task.options.body.map(toBuffer);
    const value = decodeInferRequest({ ...task.options, body, model });
    return { value, made: value.request.inputs.flatMap((input) => input.data) };
  }
  const response: InferResponse = { ...task.response, outputs: task.response.outputs.map(withBuffers) };
  const { idBytes } = task.options;
  const idBuffer = idBytes === undefined ? undefined : toBuffer(idBytes);
  const value = encodeInferResponse(response, { ...task.options, model, idBytes: idBuffer });
  return { value, made: value.parts };
}

function toView(plain: PlainModelView): ModelView {
  return { ...plain, labelsOf: (output) => plain.labels.get(output) };
}

function withBuffers(tensor: OutputTensor): OutputTensor {
  return { ...tensor, data: tensor.data.map(toBuffer) };
}
