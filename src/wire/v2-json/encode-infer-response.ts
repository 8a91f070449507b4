// InferResponse → HTTP body: a JSON head, then the bytes of the binary outputs in the same order.
// Members come in Triton's order. Binary outputs are handed on as the buffers they are.

import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse, Parameters } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { classify } from './classification.ts';
import { writeElements } from './json-elements.ts';
import { doubleText, JsonWriter, quoteJson } from './json-writer.ts';
import { type OutputOption, type OutputOptions, optionOf } from './output-options.ts';

export interface EncodeInferResponseOptions {
  readonly outputs: OutputOptions;
  /** For the labels and the batch dimension of classifications. */
  readonly model: ModelView;
  /** The request's id, when it is not valid UTF-8. */
  readonly idBytes?: Buffer | undefined;
}

export interface EncodedInferResponse {
  readonly parts: Buffer[];
  readonly byteLength: number;
  /**
   * Bytes of JSON, for Inference-Header-Content-Length; undefined when no binary bytes follow, and the body is
   * then plain application/json.
   */
  readonly jsonLength: number | undefined;
}

interface PlannedOutput {
  readonly tensor: OutputTensor;
  /** What goes to shared memory is there already; the answer only describes it. */
  readonly sentAs: 'binary' | 'json' | 'shared';
}

export function encodeInferResponse(
  response: InferResponse,
  options: EncodeInferResponseOptions,
): EncodedInferResponse {
  const outputs = response.outputs.map((output) => planOutput(output, options));
  // The common case is binary: the head is then short, and one string is the fastest way to write it.
  const isShort = options.idBytes === undefined && outputs.every((output) => output.sentAs !== 'json');
  const head = isShort ? shortHead(response, outputs) : longHead(response, outputs, options.idBytes);
  const parts = [head];
  let byteLength = head.length;
  for (const { tensor, sentAs } of outputs) {
    if (sentAs !== 'binary' || tensor.byteLength === 0) continue;
    parts.push(...tensor.data);
    byteLength += tensor.byteLength;
  }
  return { parts, byteLength, jsonLength: byteLength > head.length ? head.length : undefined };
}

function planOutput(output: OutputTensor, options: EncodeInferResponseOptions): PlannedOutput {
  if (options.outputs.rangeByName?.has(output.name)) return { tensor: output, sentAs: 'shared' };
  const option: OutputOption = optionOf(options.outputs, output.name);
  const { classCount, isBinary } = option;
  const tensor = classCount > 0 ? classify({ output, classCount, model: options.model }) : output;
  return { tensor, sentAs: isBinary ? 'binary' : 'json' };
}

function shortHead(response: InferResponse, outputs: readonly PlannedOutput[]): Buffer {
  let text = `{${idText(response.id)}${modelText(response)}`;
  for (let i = 0; i < outputs.length; i++) {
    const { tensor, sentAs } = outputs[i]!;
    text += `${i === 0 ? '' : ','}${tensorText(tensor)}${sentAs === 'binary' ? binaryText(tensor) : '}'}`;
  }
  return Buffer.from(`${text}]}`);
}

function longHead(
  response: InferResponse,
  outputs: readonly PlannedOutput[],
  idBytes: Buffer | undefined,
): Buffer {
  const writer = new JsonWriter();
  writer.ascii('{');
  if (idBytes === undefined) {
    writer.text(idText(response.id));
  } else {
    writer.ascii('"id":');
    writer.quotedBytes(idBytes);
    writer.ascii(',');
  }
  writer.text(modelText(response));
  for (let i = 0; i < outputs.length; i++) {
    const { tensor, sentAs } = outputs[i]!;
    writer.text(`${i === 0 ? '' : ','}${tensorText(tensor)}`);
    if (sentAs === 'binary') {
      writer.ascii(binaryText(tensor));
    } else if (sentAs === 'shared') {
      writer.ascii('}');
    } else {
      writer.ascii(',"data":[');
      writeElements(writer, tensor);
      writer.ascii(']}');
    }
  }
  writer.ascii(']}');
  return writer.finish();
}

function idText(id: string): string {
  return id === '' ? '' : `"id":${quoteJson(id)},`;
}

function modelText(response: InferResponse): string {
  const parameters = response.parameters === undefined ? '' : parametersText(response.parameters);
  return `"model_name":${quoteJson(response.modelName)},"model_version":"${response.modelVersion}",${parameters}"outputs":[`;
}

function parametersText(parameters: Parameters): string {
  if (parameters.size === 0) return '';
  const members: string[] = [];
  for (const [name, value] of parameters) {
    const text =
      typeof value === 'string'
        ? quoteJson(value)
        : typeof value === 'number'
          ? doubleText(value)
          : String(value);
    members.push(`${quoteJson(name)}:${text}`);
  }
  return `"parameters":{${members.join(',')}},`;
}

function tensorText(tensor: OutputTensor): string {
  return `{"name":${quoteJson(tensor.name)},"datatype":"${tensor.datatype}","shape":[${tensor.shape.join(',')}]`;
}

function binaryText(tensor: OutputTensor): string {
  return `,"parameters":{"binary_data_size":${tensor.byteLength}}}`;
}
