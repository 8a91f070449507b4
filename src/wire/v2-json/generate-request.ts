// Body of generate and generate_stream → InferRequest: each member becomes the input of its name, or else a request
// parameter. Checks come in Triton's order and members in document order, so that of two mistakes the same one is
// named. Triton's own keys (sequence_id, priority, timeout …) mean nothing here: they are plain parameters.

import { elementBytesOf } from '../../domain/datatype.ts';
import type { ModelView, TensorSpec } from '../../domain/model-view.ts';
import type { InferRequest, ParameterValue } from '../../domain/request.ts';
import { invalidArgument, StatusError } from '../../domain/status.ts';
import type { InputTensor } from '../../domain/tensor.ts';
import { halfPrecisionRefused, idBytesOf } from './decode-infer-request.ts';
import { countElements, memberElements } from './generate-members.ts';
import { customParameterOf } from './infer-settings.ts';
import { parseJson } from './json-reader.ts';
import { readJsonStrings, readJsonTensor } from './json-tensor.ts';
import { asString, findMember, isObject, type JsonValue, memberNames } from './json-value.ts';

export interface DecodeGenerateRequestOptions {
  readonly body: Buffer;
  readonly model: ModelView;
  /** --http-max-input-size */
  readonly inputBytesMax: number;
}

export interface DecodedGenerateRequest {
  readonly request: InferRequest;
  /** Only for an id that is not valid UTF-8: the responses must echo these bytes. */
  readonly idBytes: Buffer | undefined;
}

const SIZE_ADVICE = 'Use --http-max-input-size to increase the limit.';
const ID_CONTEXT = "Unable to parse 'id'";
/** The one member whose own members are mapped like those of the request. */
const NESTED = 'parameters';

/** What the members have become so far. */
interface Mapping {
  readonly options: DecodeGenerateRequestOptions;
  readonly id: string;
  readonly inputs: InputTensor[];
  readonly parameters: Map<string, ParameterValue>;
}

export function decodeGenerateRequest(options: DecodeGenerateRequestOptions): DecodedGenerateRequest {
  const { body, inputBytesMax } = options;
  if (body.length > inputBytesMax) {
    throw invalidArgument(
      `request JSON size of ${body.length} bytes exceeds the maximum allowed input size of ${inputBytesMax} bytes. ${SIZE_ADVICE}`,
    );
  }
  const root = parseJson(body);
  const idValue = findMember(root, 'id');
  const id = idValue === undefined ? '' : asString(idValue, ID_CONTEXT);
  const mapping: Mapping = { options, id, inputs: [], parameters: new Map() };
  mapMembers(mapping, root, NESTED);
  const { inputs, parameters } = mapping;
  return {
    request: {
      id,
      inputs,
      requestedOutputs: [],
      parameters: parameters.size === 0 ? undefined : parameters,
      correlationId: 0n,
      sequenceFlags: 0,
      priority: 0,
      timeoutUs: 0,
      isRaw: false,
    },
    idBytes: idValue === undefined ? undefined : idBytesOf(idValue),
  };
}

/** `nested` is the keyword with members of its own; inside it there is none. */
function mapMembers(mapping: Mapping, object: JsonValue, nested: string | undefined): void {
  const { model } = mapping.options;
  let takenBytes = 0;
  for (const name of memberNames(object, '')) {
    const spec = model.inputs.find((input) => input.name === name);
    if (name === nested) {
      mapNested(mapping, spec, findMember(object, name)!);
    } else if (spec === undefined) {
      mapping.parameters.set(name, customParameterOf(name, findMember(object, name)!));
    } else {
      takenBytes += addInput(mapping, spec, { object, takenBytes });
    }
  }
}

function mapNested(mapping: Mapping, spec: TensorSpec | undefined, value: JsonValue): void {
  if (spec !== undefined) {
    throw invalidArgument(`Keyword '${NESTED}' for nested schema also given as input tensor name`);
  }
  if (!isObject(value)) {
    throw new StatusError(
      'INTERNAL',
      `Expected JSON object for keyword: '${NESTED}': attempt to access JSON non-object as object`,
    );
  }
  try {
    mapMembers(mapping, value, undefined);
  } catch (thrown) {
    if (!(thrown instanceof StatusError)) throw thrown;
    throw new StatusError(thrown.code, `Converting keyword: '${NESTED}': ${thrown.message}`);
  }
}

/** Returns the bytes of the tensor. A name given twice reads its first value twice, then is refused. */
function addInput(
  mapping: Mapping,
  spec: TensorSpec,
  source: { object: JsonValue; takenBytes: number },
): number {
  const { body, model, inputBytesMax } = mapping.options;
  const { name, datatype } = spec;
  if (!isObject(source.object)) throw new Error('members come from an object');
  const array = memberElements(body, source.object, source.object.names.indexOf(name));
  const elementCount = countElements(array);
  const strings = datatype === 'BYTES' ? readJsonStrings(array) : undefined;
  const byteLength = strings?.length ?? elementCount * elementBytesOf(datatype);
  if (source.takenBytes + byteLength > inputBytesMax) {
    throw invalidArgument(
      `request size of ${source.takenBytes} bytes with input '${name}' of size ${byteLength} bytes exceeds the maximum allowed input size of ${inputBytesMax}. ${SIZE_ADVICE}`,
    );
  }
  const shape = shapeOf(spec, { elementCount, isBatched: model.maxBatchSize > 0 });
  if (datatype === 'FP16' || datatype === 'BF16') {
    throw halfPrecisionRefused(name, datatype);
  }
  const data = datatype === 'BYTES' ? strings! : readJsonTensor({ array, datatype, elementCount });
  if (mapping.inputs.some((input) => input.name === name)) {
    const id = mapping.id === '' ? '<id_unknown>' : mapping.id;
    throw invalidArgument(`[request id: ${id}] input '${name}' already exists in request`);
  }
  mapping.inputs.push({ name, datatype, shape, data: [data], byteLength });
  return byteLength;
}

/** Fixed dimensions take their share of the elements, the innermost variable one takes the rest, others are 1. */
function shapeOf(spec: TensorSpec, given: { elementCount: number; isBatched: boolean }): number[] {
  const shape = given.isBatched ? [-1, ...spec.dims] : [...spec.dims];
  let rest = given.elementCount;
  for (const dim of shape) if (dim !== -1) rest /= dim;
  const innermost = shape.lastIndexOf(-1);
  if (!Number.isInteger(rest) || (innermost < 0 && rest !== 1)) {
    throw invalidArgument(`The schema can not convert input '${spec.name}' to tensor with proper shape`);
  }
  return shape.map((dim, index) => (dim !== -1 ? dim : index === innermost ? rest : 1));
}
