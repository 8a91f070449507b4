// What the tests of tracing share: a log that is kept, options, requests and a whole traced request. Used by tests
// alone.

import type { InferRequest } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import type { TraceOptions } from '../../domain/trace-options.ts';
import { createLogger, type Logger } from '../../lib/logger.ts';

export function keptLog(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const sink = {
    write: (line: string) => {
      lines.push(line);
    },
    flush: async () => {},
    close: async () => {},
  };
  return { logger: createLogger({ sink }), lines };
}

export function traceOptions(changes: Partial<TraceOptions> = {}): TraceOptions {
  return {
    mode: 'triton',
    levels: [],
    rate: 1000,
    count: -1,
    file: '',
    logFrequency: 0,
    opentelemetry: [],
    ...changes,
  };
}

/** One INT32 input NUMBER of shape [1]. */
export function numberRequest(id: string, value = 5): InferRequest {
  const data = Buffer.alloc(4);
  data.writeInt32LE(value);
  return {
    id,
    inputs: [{ name: 'NUMBER', datatype: 'INT32', shape: [1], data: [data], byteLength: 4 }],
    requestedOutputs: [],
    parameters: undefined,
    correlationId: 0n,
    sequenceFlags: 0,
    priority: 0,
    timeoutUs: 0,
    isRaw: false,
  };
}

/** What the core does with a request of `model`, from `startMs` on, one millisecond apart. */
export function runModel(trace: RequestTrace, model: string, request: InferRequest, startMs = 1000): void {
  trace.begin({ name: model, version: 1 }, request);
  trace.mark('REQUEST_START', startMs);
  trace.mark('QUEUE_START', startMs + 1);
  trace.mark('COMPUTE_START', startMs + 2);
  trace.mark('COMPUTE_INPUT_END', startMs + 3);
  trace.mark('COMPUTE_OUTPUT_START', startMs + 4);
  trace.mark('COMPUTE_END', startMs + 5);
  const outputs = request.inputs.map((input) => ({ ...input, name: 'OUT', datatype: 'INT32' as const }));
  trace.response({ modelName: model, modelVersion: 1, id: request.id, parameters: undefined, outputs });
  trace.mark('REQUEST_END', startMs + 6);
}

/** A whole request over HTTP. */
export function runRequest(trace: RequestTrace, id: string): void {
  trace.mark('HTTP_RECV_START', 998);
  trace.mark('HTTP_RECV_END', 999);
  runModel(trace, 'py_echo', numberRequest(id));
  trace.mark('INFER_RESPONSE_COMPLETE', 1007);
  trace.mark('HTTP_SEND_START', 1008);
  trace.mark('HTTP_SEND_END', 1009);
  trace.end();
}
