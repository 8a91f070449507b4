// Cuts the outputs of a whole batch into what each request gets, without copying. Pure.

import type { ExecuteOutput, ExecuteRequest } from '../../backend/sdk.ts';
import { StatusError } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import type { NativeWords } from './native-memory.ts';
import { framedOffset } from './string-tensor.ts';
import type { OutputEntry } from './tensor-table.ts';

export interface WholeOutput {
  readonly shape: readonly number[];
  readonly data: Buffer;
  /** Where elements begin, for BYTES. */
  readonly strings: { readonly offsets: NativeWords; readonly elementCount: number } | undefined;
}

export interface SplitTarget {
  readonly requests: readonly ExecuteRequest[];
  /** One per request; a request that fails here gets its error in place of its outputs. */
  readonly results: (ExecuteOutput[] | StatusError)[];
}

/** The batch size of a request is the first dimension of its first input. */
export function rowCountOf(request: ExecuteRequest): number {
  return request.inputs[0]?.shape[0] ?? 1;
}

export function isRequested(request: ExecuteRequest, index: number): boolean {
  return request.requestedOutputs.length === 0 || request.requestedOutputs.includes(index);
}

export function splitOutput(
  whole: WholeOutput,
  output: { index: number; entry: OutputEntry; isState: boolean; isBatching: boolean },
  { requests, results }: SplitTarget,
): void {
  const { index, entry, isState, isBatching } = output;
  const elementCount = elementCountOf(whole.shape);
  let start = 0;
  let rowEnd = 0;
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    const shape = shapeFor(request, whole, { entry, isBatching });
    const end = start + elementCountOf(shape);
    rowEnd += rowCountOf(request);
    const isShort =
      end > elementCount || (isBatching && entry.scatter === undefined && rowEnd > whole.shape[0]!);
    const result = results[i]!;
    if (!(result instanceof StatusError) && (isState || isRequested(request, index))) {
      if (isShort)
        results[i] = splitError(entry.name, { isState, expected: rowEnd, got: whole.shape[0] ?? 0 });
      else result.push({ index, shape, data: sliceElements(whole, entry.elementBytes, { start, end }) });
    }
    start = end;
  }
}

function shapeFor(
  request: ExecuteRequest,
  whole: WholeOutput,
  { entry, isBatching }: { entry: OutputEntry; isBatching: boolean },
): readonly number[] {
  if (entry.scatter !== undefined) {
    const { sourceIndex, shape } = entry.scatter;
    const source = request.inputs.find((input) => input.index === sourceIndex);
    return shape.map((dim, i) => (dim === -1 ? (source?.shape[i] ?? 0) : dim));
  }
  if (!isBatching) return whole.shape;
  const rowCount = rowCountOf(request);
  return rowCount === whole.shape[0] ? whole.shape : [rowCount, ...whole.shape.slice(1)];
}

function sliceElements(
  { data, strings }: WholeOutput,
  elementBytes: number,
  { start, end }: { start: number; end: number },
): Buffer {
  if (strings === undefined) return slice(data, { start: start * elementBytes, end: end * elementBytes });
  const whole = { elementCount: strings.elementCount, byteLength: data.length };
  return slice(data, {
    start: framedOffset(strings.offsets, start, whole),
    end: framedOffset(strings.offsets, end, whole),
  });
}

function slice(data: Buffer, { start, end }: { start: number; end: number }): Buffer {
  return start === 0 && end === data.length ? data : data.subarray(start, end);
}

function splitError(
  name: string,
  { isState, expected, got }: { isState: boolean; expected: number; got: number },
): StatusError {
  return new StatusError(
    'UNSUPPORTED',
    `failed to split the output ${isState ? 'state ' : ''}tensor '${name}' in responses: expected batch size of ` +
      `at least ${expected} in model output, got ${got}`,
  );
}
