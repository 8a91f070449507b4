// What a case is: a list of exchanges with a server, of which every answer is compared. The lists are in case-list.ts.

export interface CaseInput {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  /** Numbers, booleans, or texts for BYTES. */
  readonly data?: readonly (number | boolean | string)[];
  /** Raw bytes, for what JSON cannot say; over gRPC alone. */
  readonly hex?: string;
}

export interface CaseRequest {
  readonly model: string;
  readonly id?: string;
  readonly inputs: readonly CaseInput[];
  readonly outputs?: readonly string[];
  readonly parameters?: Readonly<Record<string, string | number | boolean>>;
}

export type Exchange =
  | { readonly kind: 'http'; readonly request: CaseRequest }
  | { readonly kind: 'grpc'; readonly request: CaseRequest }
  /** All requests on one stream, which is then half closed and read to its end. */
  | { readonly kind: 'stream'; readonly requests: readonly CaseRequest[] }
  /** A gRPC call that its client cancels after a moment. */
  | { readonly kind: 'cancel'; readonly request: CaseRequest; readonly afterMs: number }
  | { readonly kind: 'load'; readonly model: string }
  /** Waits until the model is gone. */
  | { readonly kind: 'unload'; readonly model: string }
  | { readonly kind: 'config'; readonly model: string }
  | { readonly kind: 'ready'; readonly model: string }
  /** The lines of the metrics page about families that begin so. */
  | { readonly kind: 'metrics'; readonly prefix: string }
  /** The lines of the server's log with that text. */
  | { readonly kind: 'log'; readonly text: string };

export interface Case {
  readonly id: string;
  readonly exchanges: readonly Exchange[];
}

/** An answer in normal form: JSON. */
export type Answer = Readonly<Record<string, unknown>>;

/** The request that every model of steps.py understands. */
export function stepRequest(model: string, step: string, more: Partial<CaseRequest> = {}): CaseRequest {
  const input: CaseInput = { name: 'STEP', datatype: 'BYTES', shape: [1], data: [step] };
  return { model, inputs: [input], ...more };
}

/** One case for each step; the steps are named in one text. */
export function stepCases(model: string, kind: 'http' | 'grpc', steps: string): Case[] {
  return steps
    .trim()
    .split(/\s+/)
    .map((step) => ({
      id: `${model}.${kind}.${step}`,
      exchanges: [{ kind, request: stepRequest(model, step) }],
    }));
}

/** As stepCases, each on a stream of its own. */
export function streamCases(model: string, steps: string): Case[] {
  return steps
    .trim()
    .split(/\s+/)
    .map((step) => ({
      id: `${model}.stream.${step}`,
      exchanges: [{ kind: 'stream', requests: [stepRequest(model, step)] }],
    }));
}
