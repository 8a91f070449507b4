// One request on its way through an ensemble: starts each step when its tensors are there, hands tensors on as the views
// they came in, makes the responses, and has exactly one end. The decisions are plan.ts's and route.ts's; the limits it
// shares with other requests are the ensemble's. Made by ensemble.ts.

import type { InferRequest, InferResponse } from '../../domain/request.ts';
import { invalidArgument, StatusError, unavailable } from '../../domain/status.ts';
import type { InputTensor, OutputTensor } from '../../domain/tensor.ts';
import type { Clock } from '../../lib/clock.ts';
import type { InferCall } from '../infer.ts';
import { BackPressure } from './back-pressure.ts';
import { ABSENT, type HeldTensor, Pass } from './pass.ts';
import { type Plan, type PlanPort, type PlanStep, shapeFor } from './plan.ts';
import type { Route } from './route.ts';
import { sequenceOf, stepSequenceOf } from './sequence-override.ts';
import type { StepGates } from './step-gates.ts';
import { StepRun, type StepRunOwner } from './step-run.ts';
import { ComputeSum, StepTrace } from './step-trace.ts';

/** The ensemble, as its requests see it. */
export interface RunOwner {
  readonly plan: Plan;
  readonly gates: StepGates;
  readonly clock: Clock;
  /** Responses of one decoupled step that the steps after it have not dealt with, before it is paused. */
  readonly passesMax: number;
  /** Tensors of all requests fill what they may take. */
  readonly isFull: boolean;
  /** Bytes that this request holds more, or less. */
  hold(byteLength: number): void;
  /** Gives a step to its model as it serves now; throws when it is refused. */
  inferStep(step: PlanStep, call: InferCall): void;
  respond(run: EnsembleRun, outputs: readonly OutputTensor[], sequence: HeldTensor['sequence']): boolean;
  /** The end; no other method is called after it. */
  end(run: EnsembleRun, error: StatusError | undefined): void;
}

const DEADLOCK =
  'unexpected deadlock, at least one output is not set while no more ensemble steps can be made';
const STUCK = 'the responses of a decoupled step fill the ensemble, and no step after it gets on';

export class EnsembleRun implements StepRunOwner {
  /** Among the requests of the ensemble. */
  readonly ordinal: number;
  readonly call: InferCall;
  readonly startMs: number;
  readonly batchSize: number;
  readonly compute = new ComputeSum();
  readonly #owner: RunOwner;
  readonly #route: Route;
  readonly #ancestors: readonly object[];
  readonly #root = new Pass(0, { parent: undefined, missingCount: 0 });
  /** By scope, those that go on. */
  readonly #passes: readonly Set<Pass>[];
  /** Steps that wait at a gate or run. */
  readonly #open = new Set<StepRun>();
  readonly #pressure: BackPressure;
  #heldBytes = 0;
  responseCount = 0;
  isEnded = false;

  constructor(
    owner: RunOwner,
    options: {
      readonly ordinal: number;
      readonly call: InferCall;
      readonly route: Route;
      readonly startMs: number;
      readonly batchSize: number;
      /** What waits for this request, the ensemble included. */
      readonly ancestors: readonly object[];
    },
  ) {
    this.#owner = owner;
    this.ordinal = options.ordinal;
    this.call = options.call;
    this.#route = options.route;
    this.startMs = options.startMs;
    this.batchSize = options.batchSize;
    this.#ancestors = options.ancestors;
    this.#pressure = new BackPressure({
      clock: owner.clock,
      passesMax: owner.passesMax,
      openCount: () => this.#open.size,
      isFull: () => owner.isFull,
      onStuck: () => this.#finish(unavailable(STUCK)),
    });
    this.#passes = Array.from({ length: owner.plan.scopeCount }, () => new Set<Pass>());
    this.#passes[0]!.add(this.#root);
  }

  /** Starts the steps that need only the request; the end may come before it returns. */
  start(): void {
    const { plan } = this.#owner;
    const byName = new Map(this.call.request.inputs.map((input) => [input.name, input]));
    for (const tensor of plan.inputs) {
      const input = byName.get(plan.tensors[tensor]!.name);
      this.#put(this.#root, tensor, input === undefined ? ABSENT : { ...input, sequence: undefined });
    }
    this.#advance(this.#root, plan.inputs);
    this.#settle();
  }

  /** The client has gone. */
  cancel(): void {
    this.#finish(new StatusError('CANCELLED', ''));
  }

  /** The server must exit. */
  abandon(error: StatusError): void {
    this.#finish(error);
  }

  begin(run: StepRun): void {
    this.#pressure.waitingCount--;
    this.#infer(run);
    this.#pressure.resume();
  }

  respond(run: StepRun, response: InferResponse): boolean {
    const sequence = sequenceOf(response.parameters);
    const written = new Map<Pass, number[]>();
    for (const output of response.outputs) {
      const tensor = run.step.outputs.get(output.name);
      if (tensor === undefined || this.#route.useCounts[tensor] === 0) continue;
      const pass = run.step.isDecoupled ? this.#passFor(run, tensor) : run.pass;
      if (pass.has(tensor)) continue;
      this.#put(pass, tensor, { ...output, sequence });
      const tensors = written.get(pass);
      if (tensors === undefined) written.set(pass, [tensor]);
      else tensors.push(tensor);
    }
    for (const [pass, tensors] of written) {
      this.#advance(pass, tensors);
      this.#closeWhenDone(pass);
    }
    return this.isEnded || !run.step.isDecoupled || this.#pressure.admit(run);
  }

  end(run: StepRun, error: StatusError | undefined): void {
    this.#open.delete(run);
    this.#pressure.ended(run);
    if (error !== undefined) {
      this.#finish(error);
    } else {
      for (const tensor of new Set(run.step.inputs.map((input) => input.tensor))) {
        this.#release(run.pass, tensor);
      }
      run.pass.openCount--;
      for (const pass of [...run.passesBegun.values()]) {
        pass.missingCount = 0;
        this.#closeWhenDone(pass);
      }
      this.#closeWhenDone(run.pass);
    }
    if (run.isEntered) this.#owner.gates.leave(run.step.index);
    this.#settle();
  }

  /** The n-th response with a certain output belongs to the n-th pass. */
  #passFor(run: StepRun, tensor: number): Pass {
    const number = run.outputCounts.get(tensor) ?? 0;
    run.outputCounts.set(tensor, number + 1);
    let pass = run.passesBegun.get(number);
    if (pass === undefined) {
      const missingCount = this.#route.stepOutputs[run.step.index]!.length;
      pass = new Pass(run.step.outputScope, { parent: run.pass, missingCount });
      pass.parent!.openCount++;
      run.passesBegun.set(number, pass);
      pass.onClosed = () => run.passesBegun.delete(number);
      this.#passes[pass.scope]!.add(pass);
    }
    pass.missingCount--;
    return pass;
  }

  #put(pass: Pass, tensor: number, value: HeldTensor | typeof ABSENT): void {
    if (this.#route.useCounts[tensor] === 0) return;
    pass.put(tensor, value, this.#route);
    if (value !== ABSENT) this.#hold(value.byteLength);
  }

  /** Starts what the tensors were the last to be waited for, and responds. */
  #advance(pass: Pass, tensors: readonly number[]): void {
    const { steps } = this.#owner.plan;
    for (const tensor of tensors) {
      for (const taker of this.#route.takers[tensor]!) {
        const step = steps[taker]!;
        for (const where of this.#passesWithin(pass, step.scope)) this.#tryStep(step, where);
      }
    }
    const { isOutput, responseScope } = this.#route;
    if (!tensors.some((tensor) => isOutput[tensor])) return;
    for (const where of this.#passesWithin(pass, responseScope)) {
      this.#tryRespond(where);
      if (where !== pass) this.#closeWhenDone(where);
    }
  }

  #passesWithin(pass: Pass, scope: number): readonly Pass[] {
    if (pass.scope === scope) return [pass];
    return [...this.#passes[scope]!].filter((candidate) => candidate.within(pass.scope) === pass);
  }

  #tryStep(step: PlanStep, pass: Pass): void {
    if (this.isEnded || pass.begunSteps.has(step.index)) return;
    if (!step.inputs.every((input) => this.#find(pass, input) !== undefined)) return;
    pass.begunSteps.add(step.index);
    const run = new StepRun(step, pass, this);
    this.#open.add(run);
    pass.openCount++;
    const { gates } = this.#owner;
    // A step that is called by one of its own steps' models must not wait for that step.
    if (this.call.ancestors?.includes(this.#owner)) gates.enterNow(step.index);
    else if (!gates.tryEnter(step.index, run)) {
      this.#pressure.waitingCount++;
      return;
    }
    run.isEntered = true;
    this.#infer(run);
  }

  #find(pass: Pass, port: PlanPort): HeldTensor | typeof ABSENT | undefined {
    return pass.within(this.#owner.plan.tensors[port.tensor]!.scope)?.valueOf(port.tensor);
  }

  #infer(run: StepRun): void {
    const { trace } = this.call;
    const real = trace instanceof StepTrace ? trace.real : trace;
    try {
      this.#owner.inferStep(run.step, {
        request: this.#requestFor(run),
        sink: run,
        cancellation: run.cancellation,
        trace: new StepTrace(real?.child(), this.compute),
        ancestors: this.#ancestors,
        headers: this.call.headers,
      });
    } catch (thrown) {
      run.fail(StatusError.from(thrown));
    }
  }

  #requestFor({ step, pass }: StepRun): InferRequest {
    const { request } = this.call;
    const { tensors } = this.#owner.plan;
    const inputs: InputTensor[] = [];
    const held: HeldTensor[] = [];
    for (const port of step.inputs) {
      const value = this.#find(pass, port);
      if (value === undefined || value === ABSENT) continue;
      held.push(value);
      const { datatype, data, byteLength } = value;
      const shape = shapeFor(port, value.shape, tensors[port.tensor]!.isBatched);
      inputs.push({ name: port.name, datatype, shape, data, byteLength });
    }
    const requestedOutputs = this.#route.stepOutputs[step.index]!;
    return { ...request, ...stepSequenceOf(held), inputs, requestedOutputs, isRaw: false };
  }

  #tryRespond(pass: Pass): void {
    if (this.isEnded || pass.isResponded) return;
    const { tensors } = this.#owner.plan;
    const outputs: OutputTensor[] = [];
    let sequence: HeldTensor['sequence'];
    for (const port of this.#route.outputs) {
      const value = this.#find(pass, port);
      if (value === undefined || value === ABSENT) return;
      sequence ??= value.sequence;
      const { data, byteLength } = value;
      const datatype = value.datatype as OutputTensor['datatype'];
      const shape = shapeFor(port, value.shape, tensors[port.tensor]!.isBatched);
      outputs.push({ name: port.name, datatype, shape, data, byteLength });
    }
    pass.isResponded = true;
    this.responseCount++;
    const hasRoom = this.#owner.respond(this, outputs, sequence);
    for (const port of this.#route.outputs) this.#release(pass, port.tensor);
    if (!hasRoom) this.#waitForClient();
  }

  #waitForClient(): void {
    this.#pressure.setClientSlow(true);
    this.call.sink.onRoom = () => this.#pressure.setClientSlow(false);
  }

  #release(pass: Pass, tensor: number): void {
    const holder = pass.within(this.#owner.plan.tensors[tensor]!.scope);
    this.#hold(-(holder?.release(tensor) ?? 0));
  }

  #hold(byteLength: number): void {
    if (this.isEnded) return;
    this.#heldBytes += byteLength;
    this.#owner.hold(byteLength);
  }

  /** A pass is over when all that can happen in it has happened; a stream of any length holds only what goes on. */
  #closeWhenDone(pass: Pass): void {
    if (pass.isClosed || pass.parent === undefined || pass.missingCount > 0 || pass.openCount > 0) return;
    const { stepsByScope, responseScope } = this.#route;
    if (pass.scope === responseScope && !pass.isResponded) return;
    if (!stepsByScope[pass.scope]!.every((step) => pass.begunSteps.has(step))) return;
    this.#hold(-pass.close());
    this.#passes[pass.scope]!.delete(pass);
    pass.onClosed?.();
    pass.parent.openCount--;
    this.#closeWhenDone(pass.parent);
  }

  /** The end comes after the last step's own: a step that has answered is not cancelled before it can say so. */
  #settle(): void {
    if (this.isEnded) return;
    if (this.#open.size > 0) this.#pressure.resume();
    else if (this.#owner.plan.isDecoupled || this.responseCount > 0) this.#finish(undefined);
    else this.#finish(invalidArgument(DEADLOCK));
  }

  #finish(error: StatusError | undefined): void {
    if (this.isEnded) return;
    this.isEnded = true;
    const open = [...this.#open];
    this.#open.clear();
    this.#pressure.stop();
    this.#owner.hold(-this.#heldBytes);
    for (const run of open) run.giveUp();
    this.#owner.end(this, error);
    for (const run of open) {
      if (run.isEntered) this.#owner.gates.leave(run.step.index);
      else this.#owner.gates.letIn(run.step.index);
    }
  }
}
