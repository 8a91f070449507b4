// A raw binary request: the whole body is the data of the model's only input, whose shape is deduced.
// Triton deduces it in its core; here the wire does, so that core sees a request like any other.

import { elementBytesOf } from '../../domain/datatype.ts';
import type { ModelView, TensorSpec } from '../../domain/model-view.ts';
import { EMPTY_REQUEST } from '../../domain/request.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';
import { elementCountOf, type InputTensor, type TensorBytes } from '../../domain/tensor.ts';
import { createBodyCursor, takeViews } from './body-cursor.ts';
import type { DecodedInferRequest, DecodeInferRequestOptions } from './decode-infer-request.ts';

/** A raw request carries no id. */
const PREFIX = '[request id: <id_unknown>] ';

export function decodeRawRequest(options: DecodeInferRequestOptions): DecodedInferRequest {
  const { body, bodyLength, model, inputBytesMax } = options;
  if (bodyLength > inputBytesMax) {
    throw invalidArgument(
      `Raw input has a byte_size (${bodyLength} bytes) that exceeds the maximum allowed value of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  const data = takeViews(createBodyCursor(body, bodyLength), bodyLength);
  return {
    request: { ...EMPTY_REQUEST, inputs: [deduceInput(data, bodyLength, model)], isRaw: true },
    idBytes: undefined,
    outputs: { byName: new Map(), isBinaryDefault: true },
  };
}

function deduceInput(data: TensorBytes, byteLength: number, model: ModelView): InputTensor {
  const spec = model.inputs[0];
  if (spec === undefined || model.inputs.length !== 1) {
    throw refused(
      `Raw request must only have 1 input (found 1) to be deduced but got ${model.inputs.length} inputs in '${model.name}' model configuration`,
    );
  }
  const { name, datatype } = spec;
  const variableDims = spec.dims.filter((dim) => dim < 0).length;
  if (variableDims > 1) {
    throw refused(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  const batch = model.maxBatchSize > 0 ? [1] : [];
  if (datatype === 'BYTES') {
    if (variableDims > 0 || elementCountOf(spec.dims) !== 1) {
      throw refused(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
    }
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32LE(byteLength);
    const shape = [...batch, ...spec.dims];
    return { name, datatype, shape, data: [length, ...data], byteLength: byteLength + 4 };
  }
  const shape = [...batch, ...deduceDims(spec, byteLength)];
  // A body that does not fill that shape is refused by core, as any tensor of the wrong size.
  return { name, datatype, shape, data, byteLength };
}

function deduceDims(spec: TensorSpec, byteLength: number): number[] {
  let fixedBytes = elementBytesOf(spec.datatype);
  for (const dim of spec.dims) if (dim >= 0) fixedBytes *= dim;
  const deduced = fixedBytes === 0 ? 0 : Math.floor(byteLength / fixedBytes);
  return spec.dims.map((dim) => (dim < 0 ? deduced : dim));
}

function refused(reason: string): StatusError {
  return invalidArgument(`${PREFIX}${reason}`);
}
