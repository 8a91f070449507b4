// The thread behind json-thread.ts: runs wire code on large bodies and sends the result back.

import { parentPort } from 'node:worker_threads';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse } from '../../domain/request.ts';
import { StatusError } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { decodeInferRequest } from '../../wire/v2-json/decode-infer-request.ts';
import { encodeInferResponse } from '../../wire/v2-json/encode-infer-response.ts';
import { type JsonTask, type JsonTaskResult, type PlainModelView, toBuffer } from './json-thread.ts';

parentPort?.on('message', (task: JsonTask) => {
  parentPort?.postMessage(resultOf(task));
});

function resultOf(task: JsonTask): JsonTaskResult {
  try {
    return { id: task.id, isOk: true, value: run(task) };
  } catch (thrown) {
    const error = StatusError.from(thrown);
    return { id: task.id, isOk: false, code: error.code, message: error.message };
  }
}

function run(task: JsonTask): unknown {
  const model = toView(task.options.model);
  if (task.kind === 'decode') {
    const body = task.options.body.map(toBuffer);
    return decodeInferRequest({ ...task.options, body, model });
  }
  const response: InferResponse = { ...task.response, outputs: task.response.outputs.map(withBuffers) };
  const { idBytes } = task.options;
  const idBuffer = idBytes === undefined ? undefined : toBuffer(idBytes);
  return encodeInferResponse(response, { ...task.options, model, idBytes: idBuffer });
}

function toView(plain: PlainModelView): ModelView {
  return { ...plain, labelsOf: (output) => plain.labels.get(output) };
}

function withBuffers(tensor: OutputTensor): OutputTensor {
  return { ...tensor, data: tensor.data.map(toBuffer) };
}
