// How long the steps of one ensemble request computed, added up as Triton does. Models tell times only to the trace of a
// request, so each step is given one: it adds, and hands on to the real trace where the request is sampled.

import type { InferRequest, InferResponse } from '../../domain/request.ts';
import type { RequestTrace, TraceActivity } from '../../domain/request-trace.ts';

const NS_PER_MS = 1e6;

export class ComputeSum {
  inputNs = 0;
  inferNs = 0;
  outputNs = 0;

  add(other: ComputeSum): void {
    this.inputNs += other.inputNs;
    this.inferNs += other.inferNs;
    this.outputNs += other.outputNs;
  }
}

export class StepTrace implements RequestTrace {
  /** Undefined when the request is not sampled. */
  readonly real: RequestTrace | undefined;
  readonly #sum: ComputeSum;
  #atMs = 0;

  constructor(real: RequestTrace | undefined, sum: ComputeSum) {
    this.real = real;
    this.#sum = sum;
  }

  mark(activity: TraceActivity, atMs: number = performance.now()): void {
    const spentNs = (atMs - this.#atMs) * NS_PER_MS;
    switch (activity) {
      case 'COMPUTE_START':
        this.#atMs = atMs;
        break;
      case 'COMPUTE_INPUT_END':
        this.#sum.inputNs += spentNs;
        this.#atMs = atMs;
        break;
      case 'COMPUTE_OUTPUT_START':
        this.#sum.inferNs += spentNs;
        this.#atMs = atMs;
        break;
      case 'COMPUTE_END':
        this.#sum.outputNs += spentNs;
        break;
    }
    this.real?.mark(activity, atMs);
  }

  /** The step was an ensemble itself. */
  addSum(sum: ComputeSum): void {
    this.#sum.add(sum);
  }

  begin(model: { readonly name: string; readonly version: number }, request: InferRequest): void {
    this.real?.begin(model, request);
  }

  response(response: InferResponse): void {
    this.real?.response(response);
  }

  traceparent(): string | undefined {
    return this.real?.traceparent();
  }

  child(): RequestTrace {
    return new StepTrace(this.real?.child(), this.#sum);
  }

  end(): void {
    this.real?.end();
  }
}
