// What a host asks of the server while it runs: inference (BLS), load and unload, readiness, metrics. CALL and RESULT
// frames have a JSON header; tensors lie in the payload, where the header says. Used by both ends.

import type { DataType } from '../domain/datatype.ts';
import type { ParameterValue } from '../domain/request.ts';
import type { StatusCode } from '../domain/status.ts';
import type { TensorBytes } from '../domain/tensor.ts';
import { alignUp, joinFrame, PREAMBLE_BYTES, writePreamble } from './protocol.ts';

/** A tensor in the payload of a CALL or RESULT. */
export interface CallTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly offset: number;
  readonly byteLength: number;
}

/** As in response parameters: int64 as decimal text. */
export type CallParameter = { int64: string } | { double: number } | { bool: boolean } | { string: string };

/** A request as the host knows it. */
export interface ParentRequest {
  readonly batchId: number;
  readonly request: number;
}

export interface InferCallMessage {
  readonly kind: 'infer';
  /** The request during whose execution the call is made, or all of its batch; when they are cancelled, so is the call. */
  readonly parent?: ParentRequest | readonly ParentRequest[];
  readonly model: string;
  /** -1 for the newest. */
  readonly version: number;
  readonly id: string;
  /** An integer that a JSON number does not hold exactly comes as decimal text in `uint64`. */
  readonly correlationId: number | string | { readonly uint64: string };
  readonly flags: number;
  readonly priority: number;
  /** Decimal text where a JSON number is not exact. */
  readonly timeoutUs: number | string;
  readonly parameters: Readonly<Record<string, CallParameter>>;
  /** Empty: all. */
  readonly requestedOutputs: readonly string[];
  readonly inputs: readonly CallTensor[];
  /** Several responses are welcome. */
  readonly isStream: boolean;
}

export interface LoadCallMessage {
  readonly kind: 'load';
  readonly model: string;
  /** JSON; empty for none. */
  readonly config: string;
  readonly files: readonly { readonly path: string; readonly offset: number; readonly byteLength: number }[];
}

export interface UnloadCallMessage {
  readonly kind: 'unload';
  readonly model: string;
  readonly isDependents: boolean;
}

export interface ReadyCallMessage {
  readonly kind: 'ready';
  readonly model: string;
  /** Decimal text; empty for the newest. */
  readonly version: string;
}

export interface MetricCallMessage extends MetricAction {
  readonly kind: 'metric';
}

/** Has no result. */
export interface MetricsCallMessage {
  readonly kind: 'metrics';
  readonly calls: readonly MetricAction[];
}

export interface MetricAction {
  readonly family: {
    readonly name: string;
    readonly help: string;
    readonly type: 'counter' | 'gauge' | 'histogram';
  };
  readonly labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram. */
  readonly buckets: readonly number[];
  /** `declare` only checks that the family can be what the host says it is. */
  readonly action: 'declare' | 'create' | 'increment' | 'set' | 'observe' | 'value' | 'delete';
  readonly value: number;
  /** Observations of this value; one where it is left out. */
  readonly count?: number;
}

/** The callId of a call that wants no result. */
export const NO_RESULT = 0;

export type CallMessage = { readonly callId: number } & (
  | InferCallMessage
  | LoadCallMessage
  | UnloadCallMessage
  | ReadyCallMessage
  | MetricCallMessage
  | MetricsCallMessage
);

/** One result; only inference may have several. */
export interface ResultMessage {
  readonly callId: number;
  readonly isFinal: boolean;
  readonly error?: { readonly code: StatusCode; readonly message: string };
  readonly response?: {
    readonly model: string;
    readonly version: number;
    readonly id: string;
    readonly parameters: Readonly<Record<string, CallParameter>>;
    readonly outputs: readonly CallTensor[];
  };
  /** Of a readiness or metric call. */
  readonly value?: boolean | number;
}

export interface CallCancelMessage {
  readonly callId: number;
}

export interface CallFlowMessage {
  readonly callId: number;
  readonly isPaused: boolean;
}

/** `message` names the offsets that `planTensors` gave. */
export function encodeCallFrame(type: number, message: object, data: readonly TensorBytes[]): Buffer[] {
  const header = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(alignUp(PREAMBLE_BYTES + header.length));
  header.copy(head, PREAMBLE_BYTES);
  const pieces: { data: Buffer; offset: number }[] = [];
  let position = 0;
  for (const bytes of data) {
    position = alignUp(position);
    for (const piece of bytes) {
      pieces.push({ data: piece, offset: position });
      position += piece.length;
    }
  }
  writePreamble(head, { type, headerBytes: header.length, payloadBytes: position });
  return joinFrame(head, { pieces, payloadBytes: position });
}

/** Where each of the tensors will lie in the payload: every one starts at a multiple of the frame alignment. */
export function planOffsets(byteLengths: readonly number[]): number[] {
  let position = 0;
  return byteLengths.map((byteLength) => {
    const offset = alignUp(position);
    position = offset + byteLength;
    return offset;
  });
}

export function toCallParameters(
  parameters: ReadonlyMap<string, ParameterValue> | undefined,
): Record<string, CallParameter> {
  const sent: Record<string, CallParameter> = {};
  for (const [name, value] of parameters ?? []) sent[name] = toCallParameter(value);
  return sent;
}

function toCallParameter(value: ParameterValue): CallParameter {
  if (typeof value === 'bigint') return { int64: String(value) };
  if (typeof value === 'number') return { double: value };
  return typeof value === 'boolean' ? { bool: value } : { string: value };
}

export function fromCallParameters(
  sent: Readonly<Record<string, CallParameter>>,
): Map<string, ParameterValue> | undefined {
  const entries = Object.entries(sent);
  if (entries.length === 0) return undefined;
  return new Map(
    entries.map(([name, value]) => [
      name,
      'int64' in value ? BigInt(value.int64) : (Object.values(value)[0] as ParameterValue),
    ]),
  );
}
