// Checks a completed and validated config against the session's signature, in Triton's order and words. Pure;
// called when an instance starts, after the server's own validation has had its say.

import { controlDataType } from '../../backend/sequence-tensors.ts';
import { fromConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { internal, invalidArgument } from '../../domain/status.ts';
import { shapeText } from '../../domain/tensor.ts';
import { datatypeOfElementType, elementTypeName, elementTypeOfDatatype } from './element-type.ts';
import type { SessionSignature, TensorSignature } from './session-signature.ts';

const CONTROL_KINDS = [
  'CONTROL_SEQUENCE_START',
  'CONTROL_SEQUENCE_END',
  'CONTROL_SEQUENCE_READY',
  'CONTROL_SEQUENCE_CORRID',
];

export function validateConfigAgainstSession(
  modelName: string,
  config: ModelConfig,
  signature: SessionSignature,
): void {
  const controlCount = validateControls(modelName, config, signature);
  const required = config.input.filter((input) => !input.optional).length;
  const stateCount = config.sequence_batching?.state.length ?? 0;
  const expected = required + config.batch_input.length + controlCount + stateCount;
  if (signature.inputs.length !== expected) {
    throw invalidArgument(
      `unable to load model '${modelName}', configuration expects ${expected} inputs, ` +
        `model provides ${signature.inputs.length}`,
    );
  }
  const inputs = byName([...signature.inputs, ...signature.overridable]);
  for (const input of config.input) validateInput(modelName, config, input, inputs);
  const outputs = byName(signature.outputs);
  for (const output of config.output) validateOutput(modelName, config, output, outputs);
  for (const state of config.sequence_batching?.state ?? []) {
    const stateOutput = findOutput(state.output_name, outputs);
    validateDatatype({
      modelName,
      what: `output state '${state.output_name}'`,
      dataType: state.data_type,
      tensor: stateOutput,
    });
    const stateInput = findInput(state.input_name, inputs);
    validateDatatype({
      modelName,
      what: `input state '${state.input_name}'`,
      dataType: state.data_type,
      tensor: stateInput,
    });
  }
  for (const target of config.batch_input.flatMap((batchInput) => batchInput.target_name)) {
    findInput(target, inputs);
  }
}

function byName(tensors: readonly TensorSignature[]): Map<string, TensorSignature> {
  return new Map(tensors.map((tensor) => [tensor.name, tensor]));
}

function findInput(name: string, inputs: ReadonlyMap<string, TensorSignature>): TensorSignature {
  const tensor = inputs.get(name);
  if (tensor !== undefined) return tensor;
  throw invalidArgument(
    `unexpected inference input '${name}', allowed inputs are: ${[...inputs.keys()].sort().join(', ')}`,
  );
}

function findOutput(name: string, outputs: ReadonlyMap<string, TensorSignature>): TensorSignature {
  const tensor = outputs.get(name);
  if (tensor !== undefined) return tensor;
  throw invalidArgument(
    `unexpected inference output '${name}', allowed outputs are: ${[...outputs.keys()].sort().join(', ')}`,
  );
}

function validateInput(
  modelName: string,
  config: ModelConfig,
  input: ModelInput,
  inputs: ReadonlyMap<string, TensorSignature>,
): void {
  if (input.optional && config.max_batch_size !== 0) {
    throw invalidArgument(
      `unable to load model '${modelName}', optional input '${input.name}' is not supported for models ` +
        'that support batching',
    );
  }
  const tensor = findInput(input.name, inputs);
  validateDatatype({ modelName, what: `input '${input.name}'`, dataType: input.data_type, tensor });
  if (input.allow_ragged_batch) {
    validateRagged(modelName, input, tensor);
    return;
  }
  validateDims(modelName, config, { tensor, dims: input.reshape?.shape ?? input.dims, isExact: false });
}

function validateRagged(modelName: string, input: ModelInput, tensor: TensorSignature): void {
  if (input.optional) {
    throw invalidArgument(
      `unable to load model '${modelName}', configuration expects model provides input with shape [-1] for ` +
        `ragged input '${input.name}', which is not supported for optional input`,
    );
  }
  if (tensor.shape.length === 1 && tensor.shape[0] === -1) return;
  throw invalidArgument(
    `unable to load model '${modelName}', configuration expects model provides input with shape [-1]  for ` +
      `ragged input '${input.name}', model provides ${shapeText(tensor.shape)}`,
  );
}

function validateOutput(
  modelName: string,
  config: ModelConfig,
  output: ModelOutput,
  outputs: ReadonlyMap<string, TensorSignature>,
): void {
  const tensor = findOutput(output.name, outputs);
  validateDatatype({ modelName, what: `output '${output.name}'`, dataType: output.data_type, tensor });
  // A scattered output need not have the shape that the model declares.
  if (config.batch_output.some((batchOutput) => batchOutput.target_name.includes(output.name))) return;
  validateDims(modelName, config, { tensor, dims: output.reshape?.shape ?? output.dims, isExact: true });
}

interface DatatypeCheck {
  readonly modelName: string;
  /** `input 'X'` */
  readonly what: string;
  readonly dataType: string;
  readonly tensor: TensorSignature;
}

function validateDatatype({ modelName, what, dataType, tensor }: DatatypeCheck): void {
  const datatype = fromConfigDataType(dataType);
  if (datatype === undefined) {
    throw internal(`unsupported datatype ${dataType} for ${what} for model '${modelName}'`);
  }
  const provided = datatypeOfElementType(tensor.elementType);
  if (provided === datatype) return;
  throw invalidArgument(
    `unable to load model '${modelName}', configuration expects datatype ${dataType} for ${what}, ` +
      `model provides TYPE_${provided ?? '<invalid>'}`,
  );
}

function validateDims(
  modelName: string,
  config: ModelConfig,
  { tensor, dims, isExact }: { tensor: TensorSignature; dims: readonly number[]; isExact: boolean },
): void {
  const { name, shape } = tensor;
  if (shape.length === 0) {
    if (dims.every((dim) => dim === 1)) return;
    throw invalidArgument(
      `unable to load model '${modelName}', scalar tensor '${name}', should only provide 1 in the model ` +
        `configuration when the model doesn't support batching. Model configuration provided: ${shapeText(dims)}.`,
    );
  }
  const isBatching = config.max_batch_size > 0;
  if (isBatching && shape[0] !== -1) {
    throw invalidArgument(
      `model '${modelName}', tensor '${name}': for the model to support batching the shape should have at least ` +
        `1 dimension and the first dimension must be -1; but shape expected by the model is ${shapeText(shape)}`,
    );
  }
  const fullDims = isBatching ? [-1, ...dims] : dims;
  const isMatch =
    shape.length === fullDims.length &&
    shape.every((dim, i) => (!isExact && dim === -1) || dim === fullDims[i]);
  if (isMatch) return;
  const specified = isBatching
    ? `an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, ` +
      `making complete shape ${shapeText(fullDims)}`
    : `shape ${shapeText(fullDims)}`;
  throw invalidArgument(
    `model '${modelName}', tensor '${name}': the model expects ${shape.length} dimensions (shape ` +
      `${shapeText(shape)}) but the model configuration specifies ${fullDims.length} dimensions (${specified})`,
  );
}

/** Returns how many control tensors the config names. */
function validateControls(modelName: string, config: ModelConfig, signature: SessionSignature): number {
  const inputs = byName(signature.inputs);
  let count = 0;
  for (const kind of CONTROL_KINDS) {
    for (const { name, control } of config.sequence_batching?.control_input ?? []) {
      const entry = control.find((candidate) => candidate.kind === kind);
      if (entry === undefined) continue;
      count++;
      const tensor = inputs.get(name);
      if (tensor === undefined) {
        throw internal(
          `configuration specified sequence control '${name}', but model does not provide that input`,
        );
      }
      validateControl(modelName, { name, dataType: controlDataType(entry), config, tensor });
    }
  }
  return count;
}

function validateControl(
  modelName: string,
  control: { name: string; dataType: string; config: ModelConfig; tensor: TensorSignature },
): void {
  const dims = control.tensor.shape.slice(control.config.max_batch_size > 0 ? 1 : 0);
  if (dims.length !== 1 || dims[0] !== 1) {
    throw invalidArgument(
      `unable to load model '${modelName}', sequence control '${control.name}' in model has dims ` +
        `${shapeText(dims)} but dims [1] is expected`,
    );
  }
  const datatype = fromConfigDataType(control.dataType);
  if (datatype !== undefined && elementTypeOfDatatype(datatype) === control.tensor.elementType) return;
  throw invalidArgument(
    `unable to load model '${modelName}', sequence control '${control.name}', the model expects data-type ` +
      `${elementTypeName(control.tensor.elementType)} but the model configuration specifies data-type ` +
      control.dataType,
  );
}
