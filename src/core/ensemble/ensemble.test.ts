import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ENSEMBLE_STALL_MS_MAX } from '../../domain/limits.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { internal, unavailable } from '../../domain/status.ts';
import { startRecording, type TraceRecord } from '../trace/trace-record.ts';
import type { StepTrace } from './step-trace.ts';
import { createEnsemble, ensembleConfig, modelConfig, type TestEnsemble } from './test-ensemble.ts';

const model = (name: string, options: Partial<Parameters<typeof modelConfig>[1]> = {}) =>
  modelConfig(name, { in: ['X'], out: ['Y'], ...options });

/** IN → a → mid → b → OUT; the first may be decoupled. */
function chain(
  options: {
    isDecoupled?: boolean;
    maxInflight?: number;
    limits?: Parameters<typeof createEnsemble>[2];
  } = {},
): TestEnsemble {
  const config = ensembleConfig({ in: ['IN'], out: ['OUT'], maxInflight: options.maxInflight ?? 0 }, [
    { model: 'a', in: { X: 'IN' }, out: { Y: 'mid' } },
    { model: 'b', in: { X: 'mid' }, out: { Y: 'OUT' } },
  ]);
  return createEnsemble(
    config,
    [model('a', { isDecoupled: options.isDecoupled ?? false }), model('b')],
    options.limits,
  );
}

describe('a request through an ensemble', () => {
  test('goes from step to step, with all that it says, and its tensors are handed on as they are', () => {
    const { ensemble, model, infer } = chain();
    const parameters = new Map([['k', 'v']]);
    const fields = { id: 'r', priority: 2, timeoutUs: 7, correlationId: 5n, sequenceFlags: 1, parameters };
    const { sink } = infer({ IN: 1 }, fields);
    assert.equal(model('b').calls.length, 0);
    model('a').answer(model('a').last, 2);
    const { request } = model('b').last;
    assert.deepEqual({ ...request, inputs: [] }, { ...request, ...fields, inputs: [] });
    assert.deepEqual(request.requestedOutputs, ['Y']);
    model('b').answer(model('b').last, 3);
    assert.deepEqual(sink.events, [{ OUT: 3 }, 'finish']);
    // A step that has answered is not told that nobody waits for it.
    for (const name of ['a', 'b']) assert.equal(model(name).last.cancellation?.isCancelled, false, name);
    assert.deepEqual(
      sink.responses[0]!.parameters,
      new Map<string, unknown>([
        ['sequence_id', 5n],
        ['sequence_start', true],
        ['sequence_end', false],
      ]),
    );
    const { success, fail, inferenceCount, executionCount } = ensemble.stats.snapshot();
    assert.deepEqual([success.count, fail.count, inferenceCount, executionCount], [1, 0, 1, 1]);
    assert.equal(ensemble.heldBytes, 0);
  });

  test('steps that do not wait for each other run side by side, and are joined', () => {
    const config = ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
      { model: 'join', in: { X: 'left', W: 'right' }, out: { Y: 'OUT' } },
      { model: 'a', in: { X: 'IN' }, out: { Y: 'left' } },
      { model: 'b', in: { X: 'IN' }, out: { Y: 'right' } },
    ]);
    const { model: of, infer } = createEnsemble(config, [
      model('join', { in: ['X', 'W'] }),
      model('a'),
      model('b'),
    ]);
    const { sink } = infer({ IN: 1 });
    assert.deepEqual([of('a').calls.length, of('b').calls.length], [1, 1]);
    of('b').answer(of('b').last, 2);
    assert.equal(of('join').calls.length, 0);
    of('a').answer(of('a').last, 3);
    assert.deepEqual(
      of('join').last.request.inputs.map(({ name, data }) => [name, data[0]![0]]),
      [
        ['X', 3],
        ['W', 2],
      ],
    );
    of('join').answer(of('join').last, 4);
    assert.deepEqual(sink.events, [{ OUT: 4 }, 'finish']);
  });

  test('only the steps that the requested outputs need are run', () => {
    const config = ensembleConfig({ in: ['IN'], out: ['mid', 'OUT'] }, [
      { model: 'a', in: { X: 'IN' }, out: { Y: 'mid' } },
      { model: 'b', in: { X: 'mid' }, out: { Y: 'OUT' } },
    ]);
    const { model: of, infer } = createEnsemble(config, [model('a'), model('b')]);
    const { sink } = infer({ IN: 1 }, { requestedOutputs: ['mid'] });
    of('a').answer(of('a').last, 2);
    assert.deepEqual(sink.events, [{ mid: 2 }, 'finish']);
    assert.equal(of('b').calls.length, 0);
  });

  test('an optional input that is left out is left out of the step', () => {
    const config = ensembleConfig({ in: ['IN', 'MORE'], out: ['OUT'], optional: ['MORE'] }, [
      { model: 'a', in: { X: 'IN', W: 'MORE' }, out: { Y: 'OUT' } },
    ]);
    const { model: of, infer } = createEnsemble(config, [model('a', { in: ['X', 'W'], optional: ['W'] })]);
    infer({ IN: 1 });
    assert.deepEqual(
      of('a').last.request.inputs.map(({ name }) => name),
      ['X'],
    );
  });

  test('a batch of one is added for a model that batches and taken away after it', () => {
    const config = ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
      { model: 'a', in: { X: 'IN' }, out: { Y: 'OUT' } },
    ]);
    const { model: of, infer } = createEnsemble(config, [model('a', { maxBatchSize: 4 })]);
    const { sink } = infer({ IN: 1 });
    assert.deepEqual(of('a').last.request.inputs[0]!.shape, [1, 1]);
    of('a').answer(of('a').last, 2);
    assert.deepEqual(sink.responses[0]!.outputs[0]!.shape, [1]);
  });

  test('parameters of a response move the steps after it to another sequence', () => {
    const { model, infer } = chain();
    const { sink } = infer({ IN: 1 }, { correlationId: 5n, sequenceFlags: 1 });
    const parameters = new Map<string, bigint | boolean>([
      ['sequence_id', 9n],
      ['sequence_end', true],
    ]);
    model('a').answer(model('a').last, 2, { parameters });
    const { correlationId, sequenceFlags } = model('b').last.request;
    assert.deepEqual([correlationId, sequenceFlags], [9n, 2]);
    model('b').answer(model('b').last, 3);
    assert.equal(sink.responses[0]!.parameters?.get('sequence_id'), 5n);
  });

  test('an ensemble is a step of another', () => {
    const inner = chain();
    const config = {
      ...ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
        { model: 'e', in: { IN: 'IN' }, out: { OUT: 'OUT' } },
      ]),
      name: 'outer',
    };
    const { infer, ensemble } = createEnsemble(config, [inner.ensemble]);
    const { sink } = infer({ IN: 1 });
    inner.model('a').answer(inner.model('a').last, 2);
    inner.model('b').last.sink.fail(internal('no'));
    assert.deepEqual(sink.events, ["INTERNAL: in ensemble 'outer', in ensemble 'e', no"]);
    assert.deepEqual([ensemble.openCount, inner.ensemble.openCount], [0, 0]);
  });

  test('the steps are told who waits for them', () => {
    const { ensemble, model, infer } = chain();
    infer({ IN: 1 });
    assert.deepEqual(model('a').last.ancestors, [ensemble]);
  });

  test('the model that serves now is asked, and the last one while it is being unloaded', () => {
    const { models, model: of, infer } = chain();
    const { sink } = infer({ IN: 1 });
    const old = of('b');
    models.delete('b');
    of('a').answer(of('a').last, 2);
    old.answer(old.last, 3);
    assert.deepEqual(sink.events, [{ OUT: 3 }, 'finish']);
  });
});

describe('what is measured', () => {
  /** As a model tells its times: 1 ms of input, 2 of inference, 3 of output. */
  function compute(trace: RequestTrace | undefined): void {
    trace?.mark('COMPUTE_START', 10);
    trace?.mark('COMPUTE_INPUT_END', 11);
    trace?.mark('COMPUTE_OUTPUT_START', 13);
    trace?.mark('COMPUTE_END', 16);
  }

  test('the times of the steps are added up, through ensembles inside too', () => {
    const inner = chain();
    const config = {
      ...ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
        { model: 'e', in: { IN: 'IN' }, out: { OUT: 'OUT' } },
      ]),
      name: 'outer',
    };
    const { infer, ensemble } = createEnsemble(config, [inner.ensemble]);
    infer({ IN: 1 });
    for (const name of ['a', 'b']) {
      const { last } = inner.model(name);
      compute(last.trace);
      inner.model(name).answer(last, 2);
    }
    for (const { stats } of [inner.ensemble, ensemble]) {
      const { computeInput, computeInfer, computeOutput, batchStats } = stats.snapshot();
      assert.deepEqual([computeInput.ns, computeInfer.ns, computeOutput.ns], [2e6, 4e6, 6e6]);
      assert.deepEqual([batchStats[0]!.batchSize, batchStats[0]!.computeInfer.ns], [1, 4e6]);
      assert.deepEqual([stats.snapshot().success.count, stats.snapshot().fail.count], [1, 0]);
    }
  });

  test('a sampled request has a trace of its own for each step, below the one of the ensemble', () => {
    const { model, infer } = chain();
    let nextId = 1;
    const trace = startRecording({
      hasTimestamps: true,
      hasTensors: false,
      nextId: () => nextId++,
      traceId: undefined,
      onFinished: () => {},
    });
    infer({ IN: 1 }, {}, { trace });
    const step = model('a').last.trace as StepTrace;
    assert.deepEqual(
      [(step.real as unknown as TraceRecord).id, (step.real as unknown as TraceRecord).parentId],
      [2, 1],
    );
    compute(step);
    const { entries } = step.real as unknown as TraceRecord;
    assert.deepEqual(
      entries.map(({ activity }) => activity),
      ['COMPUTE_START', 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START', 'COMPUTE_END'],
    );
  });
});

describe('a step that fails', () => {
  test('fails the request once, and the others are cancelled', () => {
    const config = ensembleConfig({ in: ['IN'], out: ['left', 'right'] }, [
      { model: 'a', in: { X: 'IN' }, out: { Y: 'left' } },
      { model: 'b', in: { X: 'IN' }, out: { Y: 'right' } },
    ]);
    const { ensemble, model: of, infer } = createEnsemble(config, [model('a'), model('b')]);
    const { sink } = infer({ IN: 1 });
    of('a').last.sink.fail(internal('no'));
    assert.equal(of('b').last.cancellation?.isCancelled, true);
    of('b').answer(of('b').last, 2);
    assert.deepEqual(sink.events, ["INTERNAL: in ensemble 'e', no"]);
    assert.equal(ensemble.stats.snapshot().fail.count, 1);
    assert.equal(ensemble.heldBytes, 0);
  });

  test('a refused step fails the request at once', () => {
    const { model, infer } = chain();
    const { sink } = infer({ IN: 1 });
    model('b').refusal = unavailable('Exceeds maximum queue size');
    model('a').answer(model('a').last, 2);
    assert.deepEqual(sink.events, ["UNAVAILABLE: in ensemble 'e', Exceeds maximum queue size"]);
  });

  test('an output that never comes is a deadlock, as Triton calls it', () => {
    const { model, infer } = chain();
    const { sink } = infer({ IN: 1 });
    model('a').last.sink.finish();
    assert.deepEqual(sink.events, [
      "INVALID_ARG: in ensemble 'e', unexpected deadlock, at least one output is not set while no more ensemble steps can be made",
    ]);
  });

  test('a client that goes cancels the steps', () => {
    const { ensemble, model, infer } = chain();
    const { sink, cancel } = infer({ IN: 1 });
    cancel();
    assert.equal(model('a').last.cancellation?.isCancelled, true);
    assert.deepEqual(sink.events, ['CANCELLED: ']);
    assert.equal(ensemble.openCount, 0);
  });

  test('one error of a decoupled step ends the request, and the step', () => {
    const { model, infer } = chain({ isDecoupled: true });
    const { sink } = infer({ IN: 1 });
    model('a').last.sink.sendError(internal('one of many'), false);
    assert.deepEqual(sink.events, ["INTERNAL: in ensemble 'e', one of many"]);
    assert.equal(model('a').last.cancellation?.isCancelled, true);
  });
});

describe('decoupled steps', () => {
  test('every response makes a pass of its own; the end comes after the last', () => {
    const { ensemble, model, infer } = chain({ isDecoupled: true });
    assert.equal(ensemble.isDecoupled, true);
    const { sink } = infer({ IN: 1 });
    const call = model('a').last;
    model('a').respond(call, 10);
    model('a').respond(call, 20);
    call.sink.finish();
    const [first, second] = model('b').calls;
    model('b').answer(second!, 21);
    model('b').answer(first!, 11);
    assert.deepEqual(sink.events, [{ OUT: 21 }, { OUT: 11 }, 'finish']);
    assert.equal(ensemble.heldBytes, 0);
  });

  test('a stream of any length holds only what goes on', () => {
    const { ensemble, model, infer } = chain({ isDecoupled: true });
    const { sink } = infer({ IN: 1 });
    const call = model('a').last;
    for (let i = 0; i < 1_000; i++) {
      assert.equal(model('a').respond(call, i % 256), true);
      model('b').answer(model('b').last, i % 256);
      // The input, which the step that goes on was given.
      assert.equal(ensemble.heldBytes, 1);
    }
    call.sink.finish();
    assert.equal(sink.events.length, 1_001);
  });

  test('no response at all is an end', () => {
    const { model, infer } = chain({ isDecoupled: true });
    const { sink } = infer({ IN: 1 });
    model('a').last.sink.finish();
    assert.deepEqual(sink.events, ['finish']);
  });

  test('what exists once goes with every pass, also when it comes later', () => {
    const config = ensembleConfig({ in: ['IN'], out: ['OUT'] }, [
      { model: 'slow', in: { X: 'IN' }, out: { Y: 'once' } },
      { model: 'many', in: { X: 'IN' }, out: { Y: 'each' } },
      { model: 'join', in: { X: 'once', W: 'each' }, out: { Y: 'OUT' } },
    ]);
    const { model: of, infer } = createEnsemble(config, [
      model('slow'),
      model('many', { isDecoupled: true }),
      model('join', { in: ['X', 'W'] }),
    ]);
    infer({ IN: 1 });
    of('many').respond(of('many').last, 10);
    of('slow').answer(of('slow').last, 5);
    of('many').respond(of('many').last, 20);
    assert.deepEqual(
      of('join').calls.map(({ request }) => request.inputs.map(({ data }) => data[0]![0])),
      [
        [5, 10],
        [5, 20],
      ],
    );
  });
});

describe('back-pressure', () => {
  const limits = { requestsMax: 2, bytesMax: 1000, passesMax: 3 };

  test('a decoupled step is paused while the steps after it have enough to do', () => {
    const { model, infer } = chain({ isDecoupled: true, limits });
    infer({ IN: 1 });
    const call = model('a').last;
    let roomCount = 0;
    call.sink.onRoom = () => roomCount++;
    assert.deepEqual(
      [10, 20, 30].map((value) => model('a').respond(call, value)),
      [true, true, false],
    );
    model('b').answer(model('b').calls[0]!, 11);
    assert.equal(roomCount, 1);
    assert.equal(model('a').respond(call, 40), false);
  });

  test('max_inflight_requests holds over all requests, in turn', () => {
    const { ensemble, model, infer } = chain({ maxInflight: 1 });
    const sinks = [1, 2].map((value) => infer({ IN: value }).sink);
    assert.equal(model('a').calls.length, 1);
    model('a').answer(model('a').last, 10);
    assert.equal(model('a').calls.length, 2);
    assert.equal(ensemble.gates.inFlightCountOf(0), 1);
    model('a').answer(model('a').last, 20);
    for (const value of [11, 21]) model('b').answer(model('b').last, value);
    assert.deepEqual(
      sinks.map(({ events }) => events),
      [
        [{ OUT: 11 }, 'finish'],
        [{ OUT: 21 }, 'finish'],
      ],
    );
  });

  test('a step that waits at its gate pauses the decoupled step before it', () => {
    const { model, infer } = chain({ isDecoupled: true, maxInflight: 1 });
    infer({ IN: 1 });
    const call = model('a').last;
    assert.deepEqual([model('a').respond(call, 10), model('a').respond(call, 20)], [true, false]);
    assert.equal(model('b').calls.length, 1);
    model('b').answer(model('b').last, 11);
    assert.equal(model('b').calls.length, 2);
  });

  test('an ensemble that one of its own steps calls does not wait for that step', () => {
    const { model, infer } = chain({ maxInflight: 1 });
    infer({ IN: 1 });
    infer({ IN: 2 });
    assert.equal(model('a').calls.length, 1);
    infer({ IN: 3 }, {}, { ancestors: model('a').last.ancestors });
    assert.equal(model('a').calls.length, 2);
  });

  test('a client that reads slowly pauses the decoupled step', () => {
    const { model, infer } = chain({ isDecoupled: true });
    const { sink } = infer({ IN: 1 });
    const call = model('a').last;
    let roomCount = 0;
    call.sink.onRoom = () => roomCount++;
    sink.hasRoom = false;
    assert.equal(model('a').respond(call, 10), true);
    model('b').answer(model('b').last, 11);
    assert.equal(model('a').respond(call, 20), false);
    sink.onRoom!();
    assert.equal(roomCount, 1);
  });

  test('a pause does not last when nothing after the step gets on', () => {
    const { clock, model, infer } = chain({ isDecoupled: true, limits });
    infer({ IN: 1 });
    const call = model('a').last;
    let roomCount = 0;
    call.sink.onRoom = () => roomCount++;
    for (const value of [10, 20, 30]) model('a').respond(call, value);
    clock.advance(ENSEMBLE_STALL_MS_MAX - 1);
    assert.equal(roomCount, 0);
    clock.advance(1);
    assert.equal(roomCount, 1);
    // Until something gets on, it need not stop again.
    assert.equal(model('a').respond(call, 40), true);
  });

  test('but what it sends has an end: the bytes of the ensemble', () => {
    const { clock, ensemble, model, infer } = chain({
      isDecoupled: true,
      limits: { ...limits, bytesMax: 6 },
    });
    const { sink } = infer({ IN: 1 });
    const call = model('a').last;
    for (const value of [10, 20, 30]) model('a').respond(call, value);
    clock.advance(ENSEMBLE_STALL_MS_MAX);
    for (const value of [40, 50, 60]) model('a').respond(call, value);
    assert.deepEqual(sink.events, [
      "UNAVAILABLE: in ensemble 'e', the responses of a decoupled step fill the ensemble, and no step after it gets on",
    ]);
    assert.equal(ensemble.heldBytes, 0);
  });

  test('requests are refused when too many are inside', () => {
    const { infer } = chain({ limits });
    infer({ IN: 1 });
    infer({ IN: 2 });
    assert.throws(() => infer({ IN: 3 }), {
      code: 'UNAVAILABLE',
      message: '[request id: <id_unknown>] Exceeds maximum queue size',
    });
  });
});

describe('the end of an ensemble', () => {
  test('waits for what is under way and refuses what is new', async () => {
    const { ensemble, model, infer } = chain();
    const { sink } = infer({ IN: 1 });
    let isUnloaded = false;
    const unloaded = ensemble.unload().then(() => {
      isUnloaded = true;
    });
    assert.throws(() => infer({ IN: 2 }), /stopped accepting new inference requests/);
    await Promise.resolve();
    assert.equal(isUnloaded, false);
    model('a').answer(model('a').last, 2);
    model('b').answer(model('b').last, 3);
    await unloaded;
    assert.deepEqual(sink.events, [{ OUT: 3 }, 'finish']);
  });

  test('abandons what is open when the server must exit', () => {
    const { ensemble, infer } = chain();
    const { sink } = infer({ IN: 1 });
    ensemble.abandon(unavailable('Server exiting'));
    assert.deepEqual(sink.events, ["UNAVAILABLE: in ensemble 'e', Server exiting"]);
  });
});
