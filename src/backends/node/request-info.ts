// Reads what the server tells of a request beside its tensors (docs/host-protocol.md, request info). It is JSON but for
// two things: whole numbers may be beyond 2^53, and doubles may be NaN or infinite. Pure.

import type { ParameterValue } from '../../backend/model-sdk/model-request.ts';

export interface RequestInfo {
  readonly id: string;
  readonly correlationId: number | bigint | string;
  readonly flags: number;
  readonly priority: number;
  readonly timeoutUs: number | bigint;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
}

const NO_INFO: RequestInfo = {
  id: '',
  correlationId: 0,
  flags: 0,
  priority: 0,
  timeoutUs: 0,
  parameters: {},
};

/** Texts and numbers are matched as a whole, so that what is inside of them counts for nothing. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*/g;
const UNUSUAL = /^(?:-?Infinity|NaN|-?\d{16,})$/;

export function parseRequestInfo(info: Buffer | undefined): RequestInfo {
  if (info === undefined) return NO_INFO;
  const text = info.toString();
  // An array stands for such a number: the info has none of its own.
  const plain = text.replace(TOKENS, (token) => (UNUSUAL.test(token) ? `["${token}"]` : token));
  return (plain === text ? JSON.parse(text) : JSON.parse(plain, revive)) as RequestInfo;
}

function revive(_key: string, value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  const text = String(value[0]);
  const number = Number(text);
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(text) : number;
}
