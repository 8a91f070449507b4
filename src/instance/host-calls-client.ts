// The host's end of CALL and RESULT: what its model has asked of the server and not been answered. Used by host-loop.ts,
// one per host; the server's end is core/model/host-calls.ts. A server that goes away takes the host with it, so nothing
// here waits for ever.

import type {
  OpenInferCall,
  ServerCalls,
  ServerInferCall,
  ServerInferEvents,
  ServerInferResponse,
  ServerMetricCall,
} from '../backend/server-calls.ts';
import { StatusError } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import { NumberTable } from '../lib/number-table.ts';
import {
  encodeCallFrame,
  fromCallParameters,
  type InferCallMessage,
  type LoadCallMessage,
  type MetricsCallMessage,
  NO_RESULT,
  planOffsets,
  type ResultMessage,
  toCallParameters,
} from './call-frame.ts';
import { encodeControlFrame, FRAME_CALL, FRAME_CALL_CANCEL, FRAME_CALL_FLOW } from './protocol.ts';

type OnResult = (result: ResultMessage, payload: Buffer) => void;

export class HostCallsClient implements ServerCalls {
  readonly #write: (parts: readonly Buffer[]) => void;
  readonly #open = new NumberTable<OnResult>();
  #nextCallId = 1;

  constructor(write: (parts: readonly Buffer[]) => void) {
    this.#write = write;
  }

  onResult(result: ResultMessage, payload: Buffer): void {
    const onResult = this.#open.get(result.callId);
    if (result.isFinal) this.#open.delete(result.callId);
    onResult?.(result, payload);
  }

  infer(call: ServerInferCall, events: ServerInferEvents): OpenInferCall {
    const callId = this.#send(
      toInferMessage(call),
      call.inputs.map(({ data }) => [data]),
      (result, payload) => {
        const error = errorOf(result);
        if (result.response !== undefined) events.onResponse(toResponse(result.response, payload));
        if (result.isFinal) events.onEnd(error);
        else if (error !== undefined) events.onResponse(error);
      },
    );
    const tell = (type: number, message: object) => {
      if (this.#open.has(callId)) this.#write([encodeControlFrame(type, message)]);
    };
    return {
      cancel: () => tell(FRAME_CALL_CANCEL, { callId }),
      setPaused: (isPaused) => tell(FRAME_CALL_FLOW, { callId, isPaused }),
    };
  }

  async load(
    model: string,
    override: { config: string; files: readonly { path: string; content: Buffer }[] },
  ): Promise<void> {
    const { config, files } = override;
    const offsets = planOffsets(files.map(({ content }) => content.length));
    const message: LoadCallMessage = {
      kind: 'load',
      model,
      config,
      files: files.map(({ path, content }, i) => ({
        path,
        offset: offsets[i]!,
        byteLength: content.length,
      })),
    };
    await this.#ask(
      message,
      files.map(({ content }) => [content]),
    );
  }

  async unload(model: string): Promise<void> {
    await this.#ask({ kind: 'unload', model, isDependents: false }, []);
  }

  async isReady(model: string, version: string): Promise<boolean> {
    return (await this.#ask({ kind: 'ready', model, version }, [])) === true;
  }

  async metric(call: ServerMetricCall): Promise<number> {
    return Number(await this.#ask({ kind: 'metric', ...call }, []));
  }

  noteMetrics(calls: readonly ServerMetricCall[]): void {
    const message: MetricsCallMessage = { kind: 'metrics', calls };
    this.#write(encodeCallFrame(FRAME_CALL, { callId: NO_RESULT, ...message }, []));
  }

  /** A call with one result. */
  #ask(message: object, data: readonly TensorBytes[]): Promise<boolean | number | undefined> {
    return new Promise((resolve, reject) => {
      this.#send(message, data, (result) => {
        const error = errorOf(result);
        if (error === undefined) resolve(result.value);
        else reject(error);
      });
    });
  }

  #send(message: object, data: readonly TensorBytes[], onResult: OnResult): number {
    const callId = this.#nextCallId++;
    const parts = encodeCallFrame(FRAME_CALL, { callId, ...message }, data);
    this.#open.set(callId, onResult);
    this.#write(parts);
    return callId;
  }
}

function toInferMessage(call: ServerInferCall): InferCallMessage {
  const { inputs, parameters, parent, ...rest } = call;
  const offsets = planOffsets(inputs.map(({ data }) => data.length));
  return {
    ...rest,
    kind: 'infer',
    ...(parent === undefined ? {} : { parent }),
    parameters: toCallParameters(parameters),
    inputs: inputs.map(({ name, datatype, shape, data }, i) => ({
      name,
      datatype,
      shape,
      offset: offsets[i]!,
      byteLength: data.length,
    })),
  };
}

function toResponse(sent: NonNullable<ResultMessage['response']>, payload: Buffer): ServerInferResponse {
  return {
    model: sent.model,
    version: sent.version,
    id: sent.id,
    parameters: fromCallParameters(sent.parameters),
    outputs: sent.outputs.map(({ name, datatype, shape, offset, byteLength }) => ({
      name,
      datatype,
      shape,
      data: payload.subarray(offset, offset + byteLength),
    })),
  };
}

function errorOf({ error }: ResultMessage): StatusError | undefined {
  return error === undefined ? undefined : new StatusError(error.code, error.message);
}
