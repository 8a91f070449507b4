// What the thread for JSON does for large-json.ts: wire code on large bodies. The thread imports it by its URL.

import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { decodeInferRequest } from '../../wire/v2-json/decode-infer-request.ts';
import { encodeInferResponse } from '../../wire/v2-json/encode-infer-response.ts';
import { decodeGenerateRequest } from '../../wire/v2-json/generate-request.ts';
import { type TaskModule, type TaskOutcome, toBuffer } from '../json-thread.ts';
import type { JsonTask, PlainModelView } from './large-json.ts';

export const runTask: TaskModule['runTask'] = (options) => run(options as JsonTask);

function run(task: JsonTask): TaskOutcome {
  const model = toView(task.options.model);
  if (task.kind === 'decode') {
    const body = task.options.body.map(toBuffer);
    const value = decodeInferRequest({ ...task.options, body, model });
    return { value, made: value.request.inputs.flatMap((input) => input.data) };
  }
  if (task.kind === 'generate') {
    const value = decodeGenerateRequest({ ...task.options, body: toBuffer(task.options.body), model });
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
