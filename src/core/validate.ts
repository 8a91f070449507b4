// Checks one request against one model, in the order and the words of Triton, and works out what the scheduler
// needs of it. The only maker of ValidRequest.

import type { InferRequest } from '../domain/request.ts';
import { invalidArgument, type StatusError } from '../domain/status.ts';
import { contiguous, elementCountOf, type InputTensor, shapeText } from '../domain/tensor.ts';
import type { SentInput, SentRequest } from '../instance/execute-frame.ts';
import { type InputSpec, reshapeTo, type TensorTable } from './model/tensor-table.ts';
import { isInSequence } from './scheduler/sequence/sequence.ts';
import type { SequenceRules } from './scheduler/sequence/sequence-policy.ts';

export interface ValidRequest {
  readonly sent: SentRequest;
  readonly batchSize: number;
  readonly batchKey: string;
  readonly byteLength: number;
}

export interface RequestRules {
  readonly modelName: string;
  readonly maxBatchSize: number;
  readonly tensors: TensorTable;
  /** Only where the model has sequence_batching. */
  readonly sequence?: SequenceRules | undefined;
}

const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.';

const NO_OUTPUTS: readonly number[] = [];

export function validateRequest(request: InferRequest, rules: RequestRules): ValidRequest {
  const requestedOutputs = resolveOutputs(request, rules);
  checkInputCount(request, rules);
  // Triton walks a hash map that yields the newest input first; which error comes first depends on it.
  for (let i = request.inputs.length - 1; i >= 0; i--) specOf(request.inputs[i]!, rules);
  const batchSize = checkBatchSize(request, rules);
  // Backends see the inputs in the order of the request.
  const inputs = new Array<SentInput>(request.inputs.length);
  let byteLength = 0;
  for (let i = request.inputs.length - 1; i >= 0; i--) {
    const input = request.inputs[i]!;
    inputs[i] = checkInput(request, input, rules);
    byteLength += input.byteLength;
  }
  checkRequired(request, rules);
  if (rules.sequence !== undefined) checkSequence(request, batchSize, rules);
  return {
    sent: { inputs, requestedOutputs },
    batchSize,
    batchKey: rules.tensors.hasBatchKey ? batchKeyOf(inputs, rules) : '',
    byteLength,
  };
}

export function idPrefix(request: InferRequest): string {
  return `[request id: ${request.id === '' ? '<id_unknown>' : request.id}] `;
}

function fault(request: InferRequest, text: string): StatusError {
  return invalidArgument(idPrefix(request) + text);
}

function resolveOutputs(request: InferRequest, rules: RequestRules): readonly number[] {
  if (request.requestedOutputs.length === 0) return NO_OUTPUTS;
  const indexes: number[] = [];
  for (const name of request.requestedOutputs) {
    const output = rules.tensors.outputByName.get(name);
    if (output === undefined) {
      throw invalidArgument(`unexpected inference output '${name}' for model '${rules.modelName}'`);
    }
    indexes.push(output.index);
  }
  return indexes;
}

function checkInputCount(request: InferRequest, rules: RequestRules): void {
  const { tensors } = rules;
  const count = request.inputs.length;
  if (count >= tensors.requiredCount && count <= tensors.inputs.length) return;
  throw wrongInputs(request, rules);
}

function wrongInputs(request: InferRequest, rules: RequestRules): StatusError {
  const { tensors, modelName } = rules;
  const total = tensors.inputs.length;
  const expected =
    tensors.requiredCount === total
      ? `expected ${total} inputs`
      : `expected number of inputs between ${tensors.requiredCount} and ${total}`;
  const got = request.inputs.map((input) => `'${input.name}'`).reverse();
  const missing = tensors.inputs
    .filter((spec) => !spec.optional && !request.inputs.some((input) => input.name === spec.name))
    .map((spec) => `'${spec.name}'`);
  const missingText = missing.length === 0 ? ']' : `[${missing.join(',')}]`;
  return fault(
    request,
    `${expected} but got ${request.inputs.length} inputs for model '${modelName}'. Got input(s) [${got.join(',')}], but missing required input(s) ${missingText}. Please provide all required input(s).`,
  );
}

/** With optional inputs the count can be right while a required one is missing; Triton overlooks that. */
function checkRequired(request: InferRequest, rules: RequestRules): void {
  const { tensors } = rules;
  if (tensors.requiredCount === tensors.inputs.length) return;
  const isComplete = tensors.inputs.every(
    (spec) => spec.optional || request.inputs.some((input) => input.name === spec.name),
  );
  if (!isComplete) throw wrongInputs(request, rules);
}

/** Rows of the request; 1 for a model that does not batch, and for a batch of 0. */
function checkBatchSize(request: InferRequest, rules: RequestRules): number {
  if (rules.maxBatchSize === 0) return 1;
  let batchSize = -1;
  for (let i = request.inputs.length - 1; i >= 0; i--) {
    const { name, shape } = request.inputs[i]!;
    if (shape.length === 0) {
      throw fault(
        request,
        `input '${name}' has no shape but model requires batch dimension for '${rules.modelName}'`,
      );
    }
    if (batchSize === -1) batchSize = shape[0]!;
    else if (batchSize !== shape[0]) {
      throw fault(request, `input '${name}' batch size does not match other inputs for '${rules.modelName}'`);
    }
  }
  if (batchSize > rules.maxBatchSize) {
    throw fault(
      request,
      `inference request batch-size must be <= ${rules.maxBatchSize} for '${rules.modelName}'`,
    );
  }
  return Math.max(1, batchSize);
}

function specOf(input: InputTensor, rules: RequestRules): InputSpec {
  const spec = rules.tensors.inputByName.get(input.name);
  if (spec !== undefined) return spec;
  throw invalidArgument(`unexpected inference input '${input.name}' for model '${rules.modelName}'`);
}

function checkInput(request: InferRequest, input: InputTensor, rules: RequestRules): SentInput {
  const spec = specOf(input, rules);
  if (input.datatype !== spec.datatype) {
    throw fault(
      request,
      `inference input '${input.name}' data-type is '${input.datatype}', but model '${rules.modelName}' expects '${spec.datatype}'`,
    );
  }
  if (!fits(input.shape, spec.expectedShape)) {
    throw fault(
      request,
      `unexpected shape for input '${input.name}' for model '${rules.modelName}'. Expected ${shapeText(spec.expectedShape)}, got ${shapeText(input.shape)}. ${rules.maxBatchSize > 0 ? BATCH_NOTE : ''}`,
    );
  }
  checkBytes(request, input, spec, rules);
  const batchDims = rules.maxBatchSize > 0 ? 1 : 0;
  const shape =
    spec.reshape === undefined
      ? input.shape
      : reshapeTo(input.shape, { from: spec.dims, to: spec.reshape, batchDims });
  return { index: spec.index, shape, data: input.data, byteLength: input.byteLength };
}

/** The scheduler knows which sequences have begun; whether a request can belong to one is known here. */
function checkSequence(request: InferRequest, batchSize: number, rules: RequestRules): void {
  const { corrid, isIterative } = rules.sequence!;
  const id = request.correlationId;
  if (corrid !== undefined && (typeof id === 'string') !== (corrid.datatype === 'BYTES')) {
    const given = typeof id === 'string' ? 'BYTES' : 'UINT64';
    throw fault(
      request,
      `sequence batching control '${corrid.name}' data-type is '${given}', but model '${rules.modelName}' expects '${corrid.datatype}'`,
    );
  }
  if (batchSize > 1) {
    throw invalidArgument(
      `inference request to model '${rules.modelName}' must specify batch-size 1 due to requirements of sequence batcher`,
    );
  }
  if (isIterative || isInSequence(id)) return;
  throw invalidArgument(
    `inference request to model '${rules.modelName}' must specify a non-zero or non-empty correlation ID`,
  );
}

function fits(shape: readonly number[], expected: readonly number[]): boolean {
  if (shape.length !== expected.length) return false;
  for (let i = 0; i < shape.length; i++) {
    if (expected[i] !== -1 && expected[i] !== shape[i]) return false;
  }
  return true;
}

function checkBytes(request: InferRequest, input: InputTensor, spec: InputSpec, rules: RequestRules): void {
  let count = elementCountOf(input.shape);
  // A batch of 0 is checked as a batch of 1.
  if (rules.maxBatchSize > 0 && input.shape[0] === 0) count = elementCountOf(input.shape.slice(1));
  if (spec.datatype === 'BYTES') {
    checkStrings(request, input, count, rules);
    return;
  }
  const expectedBytes = count * spec.elementBytes;
  if (input.byteLength !== expectedBytes) {
    const name = request.isRaw ? 'raw_input' : input.name;
    throw fault(
      request,
      `input byte size mismatch for input '${name}' for model '${rules.modelName}'. Expected ${expectedBytes}, got ${input.byteLength}`,
    );
  }
}

function checkStrings(
  request: InferRequest,
  input: InputTensor,
  expected: number,
  rules: RequestRules,
): void {
  const bytes = contiguous(input.data);
  let at = 0;
  let count = 0;
  while (at < bytes.length) {
    const left = bytes.length - at;
    if (left < 4) {
      throw fault(
        request,
        `incomplete string length indicator for inference input '${input.name}' for model '${rules.modelName}', expecting 4 bytes but only ${left} bytes available. Please make sure the string length indicator is in one buffer.`,
      );
    }
    const length = bytes.readUInt32LE(at);
    at += 4;
    if (length > bytes.length - at) {
      throw invalidArgument(
        `incomplete string data for inference input '${input.name}', expecting string of length ${length} but only ${bytes.length - at} bytes available`,
      );
    }
    at += length;
    count++;
  }
  if (count > expected) {
    throw fault(
      request,
      `unexpected number of string elements ${count} for inference input '${input.name}' for model '${rules.modelName}', expecting ${expected}`,
    );
  }
  if (count < expected) {
    throw fault(
      request,
      `expected ${expected} string elements for inference input '${input.name}' for model '${rules.modelName}', got ${count}`,
    );
  }
}

/** Everything that must be equal for two requests to share a batch. */
function batchKeyOf(inputs: readonly SentInput[], rules: RequestRules): string {
  const parts: string[] = [];
  for (const input of inputs) {
    const spec = rules.tensors.inputs[input.index]!;
    if (spec.isShapeKeyed) parts.push(`${input.index}:${input.shape.slice(1).join(',')}`);
    else if (spec.optional) parts.push(String(input.index));
  }
  return parts.length > 1 ? parts.sort().join(';') : (parts[0] ?? '');
}
