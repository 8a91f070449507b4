// Calls of hosts: refusals in Triton's words, cancellation by their parents, and hosts that come after one another.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { internal, notFound } from '../../domain/status.ts';
import type { CallMessage, InferCallMessage, ResultMessage } from '../../instance/call-frame.ts';
import { systemClock } from '../../lib/clock.ts';
import type { InferCall, InferTarget } from '../infer.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { HostCalls, type HostServices } from './host-calls.ts';

const RESPONSE = { modelName: 'm', modelVersion: 1, id: '', parameters: undefined, outputs: [] };

class Bench {
  readonly results: ResultMessage[] = [];
  readonly inferred: { target: InferTarget; call: InferCall }[] = [];
  readonly instance = { name: 'caller' };
  readonly outer = { name: 'outer' };
  readonly registry = new MetricsRegistry(systemClock);
  readonly calls: HostCalls;

  constructor(services: Partial<HostServices> = {}) {
    this.calls = new HostCalls({
      services: {
        registry: this.registry,
        infer: (target, call) => this.inferred.push({ target, call }),
        isDecoupled: () => false,
        load: async () => {},
        unload: async () => {},
        isModelReady: (model) => model === 'm',
        ...services,
      },
      instance: this.instance,
      sendResult: (message) => this.results.push(message),
      ancestorsOf: ({ request }) => (request === 0 ? [this.outer] : [this.outer, this.instance]),
    });
  }

  infer(callId: number, fields: Partial<InferCallMessage> = {}, payload: Buffer[] = []): void {
    this.calls.onCall(
      {
        callId,
        kind: 'infer',
        model: 'm',
        version: -1,
        id: '',
        correlationId: 0,
        flags: 0,
        priority: 0,
        timeoutUs: 0,
        parameters: {},
        requestedOutputs: [],
        inputs: [],
        isStream: false,
        ...fields,
      },
      payload,
    );
  }
}

function errorsOf(bench: Bench): (string | undefined)[] {
  return bench.results.map((result) => result.error?.message);
}

test('a request is made from the message and its payload, which may be in pieces', () => {
  const bench = new Bench();
  const payload = Buffer.alloc(72, 0).fill(1, 0, 2).fill(2, 64, 72);
  bench.infer(
    1,
    {
      parent: [
        { batchId: 1, request: 0 },
        { batchId: 1, request: 1 },
      ],
      correlationId: { uint64: '18446744073709551615' },
      timeoutUs: '9007199254740993',
      parameters: { a: { int64: '-9223372036854775808' }, b: { bool: true } },
      requestedOutputs: ['Y', 'Y'],
      inputs: [
        { name: 'A', datatype: 'INT8', shape: [2], offset: 0, byteLength: 2 },
        { name: 'B', datatype: 'FP32', shape: [2], offset: 64, byteLength: 8 },
      ],
    },
    [payload.subarray(0, 66), payload.subarray(66)],
  );
  const { call } = bench.inferred[0]!;
  const { request } = call;
  assert.equal(request.correlationId, 18446744073709551615n);
  assert.equal(request.timeoutUs, 9007199254740993n);
  assert.deepEqual(
    [...(request.parameters ?? [])],
    [
      ['a', -9223372036854775808n],
      ['b', true],
    ],
  );
  assert.deepEqual(request.requestedOutputs, ['Y']);
  assert.deepEqual(
    request.inputs.map(({ data }) => [...Buffer.concat(data)]),
    [
      [1, 1],
      [2, 2, 2, 2, 2, 2, 2, 2],
    ],
  );
  assert.deepEqual(call.ancestors, [bench.outer, bench.instance]);
});

test('refusals have the beginning, the code and the words of Triton', () => {
  const start = 'Model m - Error when running inference: ';
  const absent = new Bench({
    isDecoupled: () => {
      throw notFound("Request for unknown model: 'm' is not found");
    },
  });
  absent.infer(1);
  const decoupled = new Bench({ isDecoupled: () => true });
  decoupled.infer(1);
  decoupled.infer(2, { isStream: true });
  const refused = new Bench({
    infer: () => {
      throw notFound('no');
    },
  });
  refused.infer(1);
  const tensor = { name: 'X', datatype: 'INT8', shape: [0], offset: 0, byteLength: 0 } as const;
  refused.infer(2, { inputs: [tensor, tensor] });
  assert.deepEqual(errorsOf(absent), [
    `${start}Failed for execute the inference request. Model 'm' is not ready.`,
  ]);
  assert.deepEqual(errorsOf(decoupled), [
    `${start}Model m is using the decoupled. The current BLS request call doesn't support models using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models.'`,
  ]);
  assert.equal(decoupled.inferred.length, 1);
  assert.deepEqual(errorsOf(refused), [
    `${start}no`,
    `${start}[request id: <id_unknown>] input 'X' already exists in request`,
  ]);
  for (const { results } of [absent, refused]) {
    assert.ok(results.every(({ isFinal, error }) => isFinal && error?.code === 'INTERNAL'));
  }
});

test('responses are results; the end needs its own only when the last response did not say it', () => {
  const bench = new Bench();
  bench.infer(1);
  bench.infer(2);
  bench.infer(3);
  const [first, second, third] = bench.inferred.map(({ call }) => call.sink);
  first!.send(RESPONSE, true);
  first!.finish();
  second!.send(RESPONSE, false);
  second!.finish();
  third!.sendError(internal('a'), false);
  third!.fail(internal('b'));
  // Nothing after the end.
  first!.send(RESPONSE, true);
  assert.deepEqual(
    bench.results.map(({ callId, isFinal, response, error }) => [
      callId,
      isFinal,
      response !== undefined,
      error?.message,
    ]),
    [
      [1, true, true, undefined],
      [2, false, true, undefined],
      [2, true, false, undefined],
      [3, false, false, 'a'],
      [3, true, false, 'b'],
    ],
  );
});

test('a call is cancelled when all of its parents are, and never without any', () => {
  const bench = new Bench();
  const parent = [
    { batchId: 5, request: 0 },
    { batchId: 5, request: 1 },
  ];
  bench.infer(1, { parent });
  bench.infer(2, { parent: parent[1]! });
  bench.infer(3);
  const isCancelled = () => bench.inferred.map(({ call }) => call.cancellation?.isCancelled);
  bench.calls.onRequestCancelled(5, 1);
  assert.deepEqual(isCancelled(), [false, true, false]);
  bench.calls.onRequestCancelled(5, 1);
  assert.deepEqual(isCancelled(), [false, true, false]);
  bench.calls.onRequestCancelled(5, 0);
  assert.deepEqual(isCancelled(), [true, true, false]);
  bench.calls.onCancel(3);
  assert.deepEqual(isCancelled(), [true, true, true]);
});

test('a paused call makes the sink refuse, and its room is told', () => {
  const bench = new Bench();
  bench.infer(1, { isStream: true });
  const { sink } = bench.inferred[0]!.call;
  let roomCount = 0;
  sink.onRoom = () => {
    roomCount++;
  };
  assert.equal(sink.send(RESPONSE, false), true);
  bench.calls.onFlow(1, true);
  assert.equal(sink.send(RESPONSE, false), false);
  bench.calls.onFlow(1, false);
  assert.deepEqual([sink.send(RESPONSE, false), roomCount], [true, 1]);
});

test('what a host asked for is not told to the host after it', async () => {
  let finishLoad: (() => void) | undefined;
  const bench = new Bench({ load: () => new Promise((resolve) => (finishLoad = resolve)) });
  bench.infer(1);
  bench.calls.onCall({ callId: 2, kind: 'load', model: 'a', config: '', files: [] }, []);
  bench.calls.close();
  bench.infer(1);
  const [old, fresh] = bench.inferred.map(({ call }) => call);
  assert.deepEqual([old!.cancellation?.isCancelled, fresh!.cancellation?.isCancelled], [true, false]);
  old!.sink.fail(internal('late'));
  finishLoad!();
  await new Promise(setImmediate);
  assert.deepEqual(bench.results, []);
  fresh!.sink.send(RESPONSE, true);
  assert.equal(bench.results.length, 1);
});

test('load, unload and readiness answer with a value or an error', async () => {
  const loaded: unknown[] = [];
  const bench = new Bench({
    load: async (model, override) => {
      loaded.push([
        model,
        override.configJson,
        override.files.map(({ path, content }) => [path, String(content)]),
      ]);
    },
    unload: () => Promise.reject(notFound('not here')),
  });
  const files = [{ path: '1/f', offset: 0, byteLength: 2 }];
  bench.calls.onCall({ callId: 1, kind: 'load', model: 'a', config: '{}', files }, [Buffer.from('hi')]);
  bench.calls.onCall({ callId: 2, kind: 'unload', model: 'a', isDependents: false }, []);
  bench.calls.onCall({ callId: 3, kind: 'ready', model: 'm', version: '' }, []);
  await new Promise(setImmediate);
  assert.deepEqual(loaded, [['a', '{}', [['1/f', 'hi']]]]);
  assert.deepEqual(
    bench.results.sort((a, b) => a.callId - b.callId),
    [
      { callId: 1, isFinal: true },
      { callId: 2, isFinal: true, error: { code: 'NOT_FOUND', message: 'not here' } },
      { callId: 3, isFinal: true, value: true },
    ],
  );
});

test('metrics stand in the registry until they are deleted or the host ends; id 0 gets no result', () => {
  const bench = new Bench();
  const metric = (callId: number, fields: object): void =>
    bench.calls.onCall(
      {
        callId,
        kind: 'metric',
        family: { name: 'f', help: 'h', type: 'gauge' },
        labels: { a: 'b' },
        buckets: [],
        action: 'create',
        value: 0,
        ...fields,
      } as CallMessage,
      [],
    );
  const names = () => bench.registry.collect().map(({ name }) => name);
  metric(1, { action: 'declare' });
  assert.deepEqual(names(), []);
  metric(2, {});
  metric(0, { action: 'set', value: 4 });
  metric(3, { action: 'value' });
  assert.deepEqual(names(), ['f']);
  metric(0, { action: 'observe', value: 4 });
  metric(4, { action: 'declare', family: { name: 'f', help: 'h', type: 'counter' } });
  metric(5, { action: 'value', labels: {} });
  const many = { family: { name: 'f', help: 'h', type: 'gauge' }, labels: { a: 'b' }, buckets: [] } as const;
  bench.calls.onCall(
    {
      callId: 0,
      kind: 'metrics',
      calls: [
        { ...many, action: 'set', value: 5 },
        { ...many, labels: {}, action: 'set', value: 6 },
        { ...many, action: 'increment', value: 2 },
      ],
    },
    [],
  );
  metric(6, { action: 'value' });
  assert.deepEqual(
    bench.results.map(({ value, error }) => value ?? error?.message),
    [0, 0, 4, 'Family name already exists with different type', "metric family 'f' has no such metric", 7],
  );
  bench.calls.close();
  assert.deepEqual(names(), []);
});
