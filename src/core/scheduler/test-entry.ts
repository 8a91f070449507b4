// A request on its way through a scheduler, without tensors and without a client. Used only by tests.

import { EMPTY_REQUEST, type InferRequest, type ResponseSink } from '../../domain/request.ts';
import type { Entry } from './entry.ts';

const NO_SINK: ResponseSink = {
  send: () => true,
  sendError: () => true,
  finish: () => {},
  fail: () => {},
};

export function makeRequest(fields: Partial<InferRequest> = {}): InferRequest {
  return { ...EMPTY_REQUEST, ...fields };
}

export function makeEntry(fields: Partial<Entry> = {}): Entry {
  return {
    request: makeRequest(),
    sent: { inputs: [], requestedOutputs: [] },
    sink: NO_SINK,
    trace: undefined,
    ancestors: undefined,
    batchSize: 1,
    byteLength: 1,
    batchKey: '',
    startMs: 0,
    queueStartMs: 0,
    computeStartMs: 0,
    deadlineMs: Number.POSITIVE_INFINITY,
    level: 0,
    isAnswered: false,
    payload: undefined,
    index: 0,
    isCounted: false,
    isPaused: false,
    held: undefined,
    isEnded: false,
    ...fields,
  };
}
