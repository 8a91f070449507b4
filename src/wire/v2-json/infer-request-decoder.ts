// The fast path: clients send the same JSON head again and again with other binary data behind it, so the
// decoded head is remembered under its exact bytes and only the views on the body are cut anew.
// A leading `"id"` is left out of the key, because many clients number their requests.
// Bounded in entries and in bytes per entry; one per HTTP frontend.

import type { InputTensor } from '../../domain/tensor.ts';
import {
  checkFullyTaken,
  type DecodedInferRequest,
  type DecodeInferRequestOptions,
  decodeJsonRequest,
  type RequestHead,
  takeHead,
  takeInput,
} from './decode-infer-request.ts';
import { decodeRawRequest } from './decode-raw-request.ts';

/** Longer heads are those with many inputs, where parsing is no longer the larger cost. */
const HEAD_BYTES_MAX = 2048;
/** More kinds of requests than this at a time are not the case that a memo helps. */
const ENTRIES_MAX = 256;

const ID_STARTS = ['{"id":"', '{"id": "'].map((text) => Buffer.from(text));

export interface InferRequestDecoder {
  decode(options: DecodeInferRequestOptions): DecodedInferRequest;
}

export function createInferRequestDecoder(options?: { entriesMax?: number }): InferRequestDecoder {
  const entriesMax = options?.entriesMax ?? ENTRIES_MAX;
  // Two maps: the rest after an id is no document of its own and must never be found as one.
  const whole = new Map<string, DecodedInferRequest>();
  const afterId = new Map<string, DecodedInferRequest>();
  return {
    decode(request) {
      if (request.jsonLength === 0) return decodeRawRequest(request);
      const head = takeHead(request);
      if (request.jsonLength > HEAD_BYTES_MAX) return decodeJsonRequest(head, request);
      const id = leadingId(head.json);
      const memo = id === undefined ? whole : afterId;
      const key = head.json.toString('latin1', id?.end ?? 0);
      const known = memo.get(key);
      if (known !== undefined) return recut(known, { head, request, id: id?.text });
      const decoded = decodeJsonRequest(head, request);
      if (isAllBinary(decoded, request)) remember(memo, key, decoded, entriesMax);
      return decoded;
    },
  };
}

/** `{"id":"…",` at the start, when the id is plain ASCII; `end` is after the comma. */
function leadingId(json: Buffer): { text: string; end: number } | undefined {
  // Most heads without an id are told apart by one byte.
  if (json[2] !== 0x69) return undefined;
  const start = ID_STARTS.find((prefix) => json.subarray(0, prefix.length).equals(prefix))?.length;
  if (start === undefined) return undefined;
  let pos = start;
  while (pos < json.length) {
    const byte = json[pos]!;
    if (byte === 0x22) break;
    if (byte < 0x20 || byte > 0x7e || byte === 0x5c) return undefined;
    pos += 1;
  }
  return json[pos + 1] === 0x2c ? { text: json.toString('latin1', start, pos), end: pos + 2 } : undefined;
}

/** All data of the inputs lies behind the head or in shared memory: nothing of the tensors themselves is in it. */
function isAllBinary(decoded: DecodedInferRequest, request: DecodeInferRequestOptions): boolean {
  const shared = decoded.ranges?.inputs;
  let inputBytes = 0;
  for (const [i, input] of decoded.request.inputs.entries()) {
    if (!shared?.has(i)) inputBytes += input.byteLength;
  }
  return inputBytes === request.bodyLength - request.jsonLength && decoded.idBytes === undefined;
}

function remember(
  memo: Map<string, DecodedInferRequest>,
  key: string,
  decoded: DecodedInferRequest,
  entriesMax: number,
): void {
  if (memo.size >= entriesMax) {
    for (const oldest of memo.keys()) {
      memo.delete(oldest);
      break;
    }
  }
  // Without the data: the memo must not keep bodies alive.
  const inputs = decoded.request.inputs.map((input) => ({ ...input, data: [] }));
  memo.set(key, { ...decoded, request: { ...decoded.request, inputs } });
}

function recut(
  known: DecodedInferRequest,
  options: { head: RequestHead; request: DecodeInferRequestOptions; id: string | undefined },
): DecodedInferRequest {
  const { cursor } = options.head;
  const { model } = options.request;
  const template = known.request;
  const shared = known.ranges?.inputs;
  const inputs: InputTensor[] = [];
  for (const input of template.inputs) {
    const { name, datatype, shape, byteLength } = input;
    const data = shared?.has(inputs.length)
      ? input.data
      : takeInput(cursor, { name, size: byteLength, model });
    inputs.push({ name, datatype, shape, data, byteLength });
  }
  checkFullyTaken(cursor, model);
  const request = {
    id: options.id ?? template.id,
    inputs,
    requestedOutputs: template.requestedOutputs,
    parameters: template.parameters,
    correlationId: template.correlationId,
    sequenceFlags: template.sequenceFlags,
    priority: template.priority,
    timeoutUs: template.timeoutUs,
    isRaw: false,
  };
  const { outputs, ranges } = known;
  if (ranges !== undefined) return { request, idBytes: undefined, outputs, ranges };
  return { request, idBytes: undefined, outputs };
}
