// Business logic scripting: a model asks another one, for one response or for all of them. Called by model-handle.ts.

import type { InferOptions, InferResult } from '../../backend/model-sdk/model-context.ts';
import { ModelError } from '../../backend/model-sdk/model-error.ts';
import { Tensor } from '../../backend/model-sdk/tensor.ts';
import type {
  OpenInferCall,
  ServerCalls,
  ServerInferCall,
  ServerInferEvents,
  ServerInferResponse,
} from '../../backend/server-calls.ts';
import { StatusError } from '../../domain/status.ts';
import type { RequestPlace } from './model-request.ts';
import { fromParameters, toParameters } from './parameter-values.ts';
import { ResponseStream } from './response-stream.ts';

export interface ModelCall {
  readonly model: string;
  readonly options: InferOptions;
  readonly parent: RequestPlace | undefined;
}

export function callModel(server: ServerCalls, call: ModelCall): Promise<InferResult> {
  return new Promise((resolve, reject) => {
    let answer: InferResult | StatusError | undefined;
    open(server, call, false, {
      onResponse: (response) => {
        answer = response instanceof StatusError ? response : toResult(response);
      },
      onEnd: (error) => {
        const end = error ?? answer;
        if (end instanceof StatusError) reject(toError(end, call.options));
        else if (end !== undefined) resolve(end);
        else reject(new ModelError('INTERNAL', `model '${call.model}' ended without a response`));
      },
    });
  });
}

export function streamModel(server: ServerCalls, call: ModelCall): AsyncIterableIterator<InferResult> {
  const stream = new ResponseStream<InferResult>({
    cancel: () => opened.cancel(),
    setPaused: (isPaused) => opened.setPaused(isPaused),
  });
  const opened = open(server, call, true, {
    onResponse: (response) => {
      if (response instanceof StatusError) stream.fail(toError(response, call.options));
      else stream.push(toResult(response));
    },
    onEnd: (error) => {
      if (error === undefined) stream.end();
      else stream.fail(toError(error, call.options));
    },
  });
  return stream;
}

/** The signal is listened to as long as the call is open. */
function open(
  server: ServerCalls,
  call: ModelCall,
  isStream: boolean,
  events: ServerInferEvents,
): OpenInferCall {
  const { signal } = call.options;
  signal?.throwIfAborted();
  const opened = server.infer(toServerCall(call, isStream), {
    onResponse: events.onResponse,
    onEnd: (error) => {
      signal?.removeEventListener('abort', opened.cancel);
      events.onEnd(error);
    },
  });
  signal?.addEventListener('abort', opened.cancel, { once: true });
  return opened;
}

function toServerCall({ model, options, parent }: ModelCall, isStream: boolean): ServerInferCall {
  const inputs: unknown = options?.inputs;
  if (!Array.isArray(inputs) || !inputs.every((input) => input instanceof Tensor)) {
    throw new TypeError(`a call of model '${model}' needs 'inputs', an array of Tensors`);
  }
  return {
    parent,
    model,
    version: options.version ?? -1,
    id: options.id ?? '',
    correlationId: options.correlationId ?? 0,
    flags: options.flags ?? 0,
    priority: options.priority ?? 0,
    timeoutUs: options.timeoutUs ?? 0,
    parameters: toParameters(options.parameters),
    requestedOutputs: options.outputs ?? [],
    inputs: options.inputs.map(({ name, datatype, shape, bytes }) => ({
      name,
      datatype,
      shape,
      data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    })),
    isStream,
  };
}

function toResult(response: ServerInferResponse): InferResult {
  const outputs = response.outputs.map(
    ({ name, datatype, shape, data }) => new Tensor(name, datatype, shape, data),
  );
  return {
    modelName: response.model,
    version: response.version,
    id: response.id,
    parameters: fromParameters(response.parameters),
    outputs,
    output: (name) => {
      const found = outputs.find((tensor) => tensor.name === name);
      if (found !== undefined) return found;
      throw new ModelError(
        'INTERNAL',
        `model '${response.model}' gave no output '${name}'; it gave: ${outputs.map((tensor) => tensor.name).join(', ')}`,
      );
    },
  };
}

/** Who aborted the call gets its own reason back, as from fetch. */
function toError(error: StatusError, { signal }: InferOptions): Error {
  if (signal?.aborted === true && error.code === 'CANCELLED') return signal.reason as Error;
  return new ModelError(error.code, error.message);
}
