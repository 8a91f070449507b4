// The recorded cases as data. Each line of cases/<area>.jsonl is one case: a request and the answer that
// Triton 2.51 gave, or an ordered list of such steps, with the shared memory they need and requests that clean
// up afterwards.
import { readdirSync, readFileSync } from 'node:fs';
import { inRoot } from '../support/paths.ts';
import { isObject, type Json, type JsonObject, parseJson, toPlain } from './json.ts';

export type ServerName = 'main' | 'explicit';

/** Body bytes are body (or body_b64), then binary_b64, then binary_fill; then they are encoded. */
export interface HttpCaseRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: ReadonlyArray<readonly [string, string]>;
  readonly body?: string;
  readonly body_b64?: string;
  readonly binary_b64?: string;
  readonly binary_fill?: { readonly dtype: string; readonly count: number };
  readonly encode?: 'gzip' | 'deflate';
  /** Sent chunked, in pieces of these sizes; what is left over is the last piece. */
  readonly chunks?: readonly number[];
  /** Content-Length as written; null sends none. */
  readonly length?: string | null;
  readonly listener?: 'metrics';
  /** Bytes written as they are instead of all of the above. */
  readonly raw_b64?: string;
  readonly read_timeout_ms?: number;
  /** The connection is broken off this long after the request, without reading. */
  readonly abort_after_ms?: number;
}

export interface GrpcCaseRequest {
  /** A method of GRPCInferenceService, or "/package.Service/Method". */
  readonly rpc: string;
  /** Proto JSON. `raw_fill` in it makes entries of raw_input_contents. */
  readonly message?: PlainObject;
  /** A request message that need not be valid protobuf. */
  readonly bytes_b64?: string;
  /** Makes the call a stream. */
  readonly messages?: readonly PlainObject[];
  /** "each": the next message of a stream follows an answer. */
  readonly wait?: 'each';
  readonly metadata?: ReadonlyArray<readonly [string, string]>;
  readonly timeout_ms?: number;
  readonly cancel_after_ms?: number;
  readonly compression?: 'gzip' | 'deflate';
}

export interface PlainObject {
  readonly [key: string]: unknown;
}

export interface CaseRequest extends HttpCaseRequest, Partial<GrpcCaseRequest> {
  readonly sleep_ms?: number;
  readonly shm_read?: { readonly key: string; readonly offset?: number; readonly size: number };
  readonly parallel?: readonly CaseRequest[];
  readonly stagger_ms?: number;
}

export interface CaseCompare {
  /** Statistics and metrics: compare the difference with this earlier step. */
  readonly delta_from?: number;
  /** Repository index: look only at these models. */
  readonly models?: readonly string[];
  /** With delta_from on metrics: look only at these samples. */
  readonly counters?: readonly string[];
  /** Compare only these keys of the answer. */
  readonly only?: readonly string[];
}

export interface CaseStep {
  readonly request: CaseRequest;
  readonly response: JsonObject;
  readonly compare: CaseCompare;
  /** Recording waited this long first; replay tries again for at least as long. */
  readonly settleMs: number;
}

/** A POSIX shared memory object, made before the case and removed after it; zeros follow the data. */
export interface CaseSharedMemory {
  readonly key: string;
  readonly size: number;
  readonly data_b64?: string;
}

export interface Case {
  readonly id: string;
  readonly area: string;
  readonly server: ServerName;
  readonly sharedMemory: readonly CaseSharedMemory[];
  readonly steps: readonly CaseStep[];
  readonly cleanup: readonly CaseRequest[];
}

const COMPARE_KEYS = ['delta_from', 'models', 'counters', 'only'];

export function readCases(): Case[] {
  const folder = inRoot('test', 'conformance', 'cases');
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .sort()
    .flatMap((name) => readFileSync(`${folder}/${name}`, 'utf8').split('\n'))
    .filter((line) => line.trim() !== '')
    .map((line) => parseCase(parseJson(line)));
}

/** Every request of the steps, those sent in parallel too. */
export function requestsOf(one: Case): CaseRequest[] {
  return one.steps.flatMap(({ request }) => [request, ...(request.parallel ?? [])]);
}

/** A case that changes its server, counts on it, or measures time; the others read or infer once. */
export function isAlone(one: Case): boolean {
  const isTimed = ({ parallel, abort_after_ms, cancel_after_ms, read_timeout_ms }: CaseRequest) =>
    [parallel, abort_after_ms, cancel_after_ms, read_timeout_ms].some((option) => option !== undefined);
  return (
    one.server === 'explicit' ||
    one.steps.length > 1 ||
    one.cleanup.length > 0 ||
    one.sharedMemory.length > 0 ||
    one.steps.some(({ request, settleMs }) => settleMs > 0 || isTimed(request))
  );
}

function parseCase(value: Json): Case {
  if (!isObject(value)) throw new Error('a case is not an object');
  const steps = Array.isArray(value.steps) ? value.steps : [value];
  return {
    id: String(value.id),
    area: String(value.area),
    server: value.server === 'explicit' ? 'explicit' : 'main',
    sharedMemory: toPlain(value.shm ?? []) as CaseSharedMemory[],
    steps: steps.map(parseStep),
    cleanup: toPlain(value.cleanup ?? []) as CaseRequest[],
  };
}

function parseStep(value: Json): CaseStep {
  if (!isObject(value) || !isObject(value.response)) throw new Error('a step has no response');
  const compare = toPlain(value.compare ?? {}) as CaseCompare;
  const unknown = Object.keys(compare).filter((key) => !COMPARE_KEYS.includes(key));
  if (unknown.length > 0) throw new Error(`the replay does not know the comparison ${unknown.join(', ')}`);
  return {
    request: toPlain(value.request ?? {}) as CaseRequest,
    response: value.response,
    compare,
    settleMs: Number(value.settle_ms ?? 0),
  };
}
