// One request of a batch as the model sees it. Made for every request, so everything that a model may not ask for is
// worked out when it is asked for.

import { ModelError } from '../../backend/model-sdk/model-error.ts';
import type { InferRequest, ParameterValue, ResponseSender } from '../../backend/model-sdk/model-request.ts';
import { Tensor } from '../../backend/model-sdk/tensor.ts';
import type { ExecuteBatch, ExecuteRequest } from '../../backend/sdk.ts';
import type { ModelTables, ResponseRules } from './model-tables.ts';
import { parseRequestInfo, type RequestInfo } from './request-info.ts';

export interface RequestPlace {
  readonly batchId: number;
  readonly request: number;
}

export class ModelRequest implements InferRequest {
  readonly #batch: ExecuteBatch;
  readonly #index: number;
  readonly #tables: ModelTables;
  readonly #sender: ResponseSender | undefined;
  #inputs: readonly Tensor[] | undefined;
  #info: RequestInfo | undefined;
  #isCancelled = false;
  #abort: AbortController | undefined;

  constructor(batch: ExecuteBatch, index: number, tables: ModelTables, sender: ResponseSender | undefined) {
    this.#batch = batch;
    this.#index = index;
    this.#tables = tables;
    this.#sender = sender;
  }

  get id(): string {
    return this.#known.id;
  }

  get correlationId(): number | bigint | string {
    return this.#known.correlationId;
  }

  get flags(): number {
    return this.#known.flags;
  }

  get priority(): number {
    return this.#known.priority;
  }

  get timeoutUs(): number | bigint {
    return this.#known.timeoutUs;
  }

  get parameters(): Readonly<Record<string, ParameterValue>> {
    return this.#known.parameters;
  }

  get inputs(): readonly Tensor[] {
    this.#inputs ??= this.#own.inputs.map(({ index, shape, offset, byteLength }) => {
      const { name, datatype } = this.#tables.inputs[index]!;
      return new Tensor(name, datatype, shape, this.#batch.payload.subarray(offset, offset + byteLength));
    });
    return this.#inputs;
  }

  input(name: string): Tensor {
    const found = this.optionalInput(name);
    if (found !== undefined) return found;
    throw new ModelError(
      'INVALID_ARG',
      `the request has no input '${name}'; it has: ${this.inputs.map((tensor) => tensor.name).join(', ')}`,
    );
  }

  optionalInput(name: string): Tensor | undefined {
    return this.inputs.find((tensor) => tensor.name === name);
  }

  get requestedOutputs(): readonly string[] {
    const { requestedOutputs } = this.#own;
    const { outputNames } = this.#tables;
    return requestedOutputs.length === 0 ? outputNames : requestedOutputs.map((index) => outputNames[index]!);
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isCancelled) this.#abort.abort();
    return this.#abort.signal;
  }

  sender(): ResponseSender {
    if (this.#sender !== undefined) return this.#sender;
    throw new ModelError(
      'UNSUPPORTED',
      `model '${this.#tables.modelName}' is not decoupled: return the response from execute, or set decoupled in its config`,
    );
  }

  /** What follows is for the instance that runs the model. */
  get place(): RequestPlace {
    return { batchId: this.#batch.id, request: this.#index };
  }

  get rules(): ResponseRules {
    const { requestedOutputs, inputs } = this.#own;
    const { isBatching, isDecoupled } = this.#tables;
    const batchSize = isBatching && !isDecoupled ? (inputs[0]?.shape[0] ?? -1) : -1;
    return { requestedOutputs, batchSize };
  }

  markCancelled(): void {
    this.#isCancelled = true;
    this.#abort?.abort();
  }

  get #own(): ExecuteRequest {
    return this.#batch.requests[this.#index]!;
  }

  get #known(): RequestInfo {
    this.#info ??= parseRequestInfo(this.#own.info);
    return this.#info;
  }
}
