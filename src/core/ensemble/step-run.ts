// One step of one pass, from the moment its tensors are there: it waits at its gate, runs, and is the sink of the
// composing model's answers. Made by ensemble-run.ts, to which it tells everything; it never tells two ends.

import type { InferResponse, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import type { Pass } from './pass.ts';
import type { PlanStep } from './plan.ts';
import type { GateWaiter } from './step-gates.ts';

export interface StepRunOwner {
  /** The gate has let it in. */
  begin(run: StepRun): void;
  /** False: no more for now, `onRoom` of the run is called later. */
  respond(run: StepRun, response: InferResponse): boolean;
  end(run: StepRun, error: StatusError | undefined): void;
}

export class StepRun implements ResponseSink, GateWaiter {
  readonly step: PlanStep;
  readonly pass: Pass;
  readonly #owner: StepRunOwner;
  readonly cancellation = new Cancellation();
  /** Passes that responses of this decoupled step have begun and that go on, by number. */
  readonly passesBegun = new Map<number, Pass>();
  /** How many responses had each output. */
  readonly outputCounts = new Map<number, number>();
  isEntered = false;
  isEnded = false;
  isPaused = false;
  onRoom: (() => void) | undefined;

  constructor(step: PlanStep, pass: Pass, owner: StepRunOwner) {
    this.step = step;
    this.pass = pass;
    this.#owner = owner;
  }

  enter(): void {
    this.isEntered = true;
    this.#owner.begin(this);
  }

  send(response: InferResponse): boolean {
    return this.isEnded || this.#owner.respond(this, response);
  }

  /** The model would go on after it, the ensemble does not. */
  sendError(error: StatusError): boolean {
    this.fail(error);
    this.cancellation.cancel();
    return true;
  }

  finish(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#owner.end(this, undefined);
  }

  fail(error: StatusError): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#owner.end(this, error);
  }

  /** Nobody waits for it any more; what it still answers is dropped. */
  giveUp(): void {
    this.isEnded = true;
    this.cancellation.cancel();
  }
}
