// What is looked up for every request of a model, worked out once from its config: names and datatypes by index, outputs
// by name with the shape they must have. And the way from a model's response to the outputs that are sent.

import type { InferResponse } from '../../backend/model-sdk/model-request.ts';
import { Tensor } from '../../backend/model-sdk/tensor.ts';
import type { ExecuteOutput, ExecuteOutputs } from '../../backend/sdk.ts';
import { sequenceInputs } from '../../backend/sequence-tensors.ts';
import { type DataType, elementBytesOf, fromConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal } from '../../domain/status.ts';
import { elementCountOf, shapeText } from '../../domain/tensor.ts';
import { toParameters } from './parameter-values.ts';

export interface InputSpec {
  readonly name: string;
  readonly datatype: DataType;
}

interface OutputSpec {
  readonly index: number;
  readonly datatype: DataType;
  /** As the model makes it: batch dimension included, before the server's reshape; -1 is variable. */
  readonly shape: readonly number[];
}

/** What a response must fit. */
export interface ResponseRules {
  /** Indexes into config.output; empty means all. */
  readonly requestedOutputs: readonly number[];
  /** -1 where it is the model's choice. */
  readonly batchSize: number;
}

export class ModelTables {
  readonly modelName: string;
  readonly isBatching: boolean;
  readonly isDecoupled: boolean;
  readonly inputs: readonly InputSpec[];
  readonly outputNames: readonly string[];
  readonly #outputs: ReadonlyMap<string, OutputSpec>;

  constructor(config: ModelConfig) {
    this.modelName = config.name;
    this.isBatching = config.max_batch_size > 0;
    this.isDecoupled = config.model_transaction_policy?.decoupled === true;
    this.inputs = [
      ...config.input.map(({ name, data_type }) => ({ name, datatype: datatypeOf(data_type) })),
      ...sequenceInputs(config).map(({ name, dataType }) => ({ name, datatype: datatypeOf(dataType) })),
    ];
    this.outputNames = config.output.map(({ name }) => name);
    this.#outputs = new Map(
      config.output.map(({ name, data_type, dims, reshape }, index) => {
        const own = reshape?.shape ?? dims;
        const shape = this.isBatching ? [-1, ...own] : own;
        return [name, { index, datatype: datatypeOf(data_type), shape }];
      }),
    );
  }

  /** Throws when the response is not one that this model may give. */
  toOutputs(response: InferResponse, rules: ResponseRules): ExecuteOutputs {
    const given: unknown = response?.outputs;
    if (!Array.isArray(given)) {
      throw internal(`model '${this.modelName}' gave a response without 'outputs', an array of Tensors`);
    }
    const outputs: ExecuteOutput[] = [];
    for (const tensor of response.outputs) {
      const output = this.#toOutput(tensor, rules);
      if (outputs.some(({ index }) => index === output.index)) {
        throw internal(`model '${this.modelName}' gave output '${tensor.name}' twice`);
      }
      const isWanted = rules.requestedOutputs.length === 0 || rules.requestedOutputs.includes(output.index);
      if (isWanted) outputs.push(output);
    }
    const parameters = toParameters(response.parameters);
    return parameters === undefined ? outputs : Object.assign(outputs, { parameters });
  }

  #toOutput(tensor: Tensor, rules: ResponseRules): ExecuteOutput {
    if (!(tensor instanceof Tensor)) {
      throw internal(`model '${this.modelName}' gave an output that is no Tensor`);
    }
    const { name, datatype, shape, bytes } = tensor;
    const spec = this.#outputs.get(name);
    if (spec === undefined) {
      const known = this.outputNames.join(', ');
      throw internal(
        `model '${this.modelName}' gave output '${name}', which its config does not have (${known})`,
      );
    }
    if (datatype !== spec.datatype) {
      throw this.#mismatch(name, `datatype ${datatype}`, spec.datatype);
    }
    if (!fits(shape, spec.shape)) {
      throw this.#mismatch(name, `shape ${shapeText(shape)}`, shapeText(spec.shape));
    }
    if (this.isBatching && rules.batchSize !== -1 && shape[0] !== rules.batchSize) {
      const rows = `${rules.batchSize} rows, as many as its request`;
      throw internal(
        `model '${this.modelName}' gave output '${name}' of shape ${shapeText(shape)}; it must have ${rows}`,
      );
    }
    const elementBytes = elementBytesOf(datatype);
    if (elementBytes > 0 && elementCountOf(shape) * elementBytes !== bytes.byteLength) {
      throw this.#mismatch(name, `${bytes.byteLength} bytes`, `a tensor of shape ${shapeText(shape)}`);
    }
    return { index: spec.index, shape, data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
  }

  #mismatch(name: string, given: string, wanted: string): Error {
    return internal(
      `model '${this.modelName}' gave output '${name}' with ${given}; its config says ${wanted}`,
    );
  }
}

function fits(shape: readonly number[], wanted: readonly number[]): boolean {
  if (shape.length !== wanted.length) return false;
  for (let i = 0; i < shape.length; i++) if (wanted[i] !== -1 && wanted[i] !== shape[i]) return false;
  return true;
}

function datatypeOf(configType: string): DataType {
  const datatype = fromConfigDataType(configType);
  if (datatype === undefined) throw internal(`a tensor of type ${configType} has no datatype`);
  return datatype;
}
