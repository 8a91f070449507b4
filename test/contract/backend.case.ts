// What every backend promises in src/backend/sdk.ts, as tests. A backend's own test file says how to make a model
// of it that copies FP32 [n,2] to its output, and runs these.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Backend,
  BackendInstance,
  BackendModel,
  ExecuteBatch,
  ExecuteReply,
  LoadContext,
} from '../../src/backend/sdk.ts';
import { StatusError } from '../../src/domain/status.ts';
import {
  decodeExecuteFrame,
  encodeExecuteFrame,
  type SentRequest,
} from '../../src/instance/execute-frame.ts';
import { FrameReader } from '../../src/instance/frame-reader.ts';

export interface BackendCase {
  readonly backend: Backend;
  /** A model with input 0 and output 0 of FP32 [2], max_batch_size 4, whose output is `expected` of its input. */
  makeContext(): LoadContext;
  /** A model that cannot be loaded. */
  makeBrokenContext(): LoadContext;
  expected(value: number): number;
}

export function describeBackend(backendCase: BackendCase): void {
  const { backend } = backendCase;

  async function withInstance(body: (instance: BackendInstance) => Promise<void> | void): Promise<void> {
    const model = await backend.load(backendCase.makeContext());
    const instance = await model.start(model.config);
    try {
      await body(instance);
    } finally {
      instance.close();
    }
  }

  test(`${backend.name}: load keeps what the config says and does not change its argument`, async () => {
    const context = backendCase.makeContext();
    const before = structuredClone(context.config);
    const model: BackendModel = await backend.load(context);
    assert.deepEqual(context.config, before);
    assert.equal(model.config.max_batch_size, before.max_batch_size);
    assert.deepEqual(model.config.input, before.input);
    assert.deepEqual(model.config.output, before.output);
    (await model.start(model.config)).close();
  });

  test(`${backend.name}: a complete config stays the same with completion on and off`, async () => {
    const context = backendCase.makeContext();
    const configs = [];
    for (const isAutoComplete of [true, false]) {
      const model = await backend.load({ ...context, isAutoComplete });
      configs.push(model.config);
      (await model.start(model.config)).close();
    }
    assert.deepEqual(configs[0], configs[1]);
  });

  test(`${backend.name}: what cannot be loaded is refused with a StatusError`, async () => {
    const load = async () => {
      const model = await backend.load(backendCase.makeBrokenContext());
      (await model.start(model.config)).close();
    };
    await assert.rejects(load, (thrown) => thrown instanceof StatusError && thrown.message !== '');
  });

  test(`${backend.name}: one result per request, in order, whatever their batch sizes`, () =>
    withInstance(async (instance) => {
      const requests = [makeRequest([1, 2]), makeRequest([3, 4, 5, 6]), makeRequest([7, 8])];
      const reply = await instance.execute(makeBatch(5, requests), noSender);
      assert.deepEqual(valuesOf(reply), [
        { shape: [1, 2], values: [1, 2].map(backendCase.expected) },
        { shape: [2, 2], values: [3, 4, 5, 6].map(backendCase.expected) },
        { shape: [1, 2], values: [7, 8].map(backendCase.expected) },
      ]);
      for (const ns of [reply.computeInputNs, reply.computeInferNs, reply.computeOutputNs])
        assert.ok(ns >= 0);
      reply.release?.();
    }));

  test(`${backend.name}: requested outputs are answered, by index`, () =>
    withInstance(async (instance) => {
      const reply = await instance.execute(
        makeBatch(1, [{ ...makeRequest([1, 2]), requestedOutputs: [0] }]),
        noSender,
      );
      const [outputs] = reply.results;
      assert.ok(Array.isArray(outputs));
      assert.deepEqual(
        outputs.map(({ index }) => index),
        [0],
      );
      reply.release?.();
    }));

  test(`${backend.name}: batch after batch, with the memory of the last one given back`, () =>
    withInstance(async (instance) => {
      for (let i = 0; i < 50; i++) {
        const reply = await instance.execute(makeBatch(i, [makeRequest([i, -i])]), noSender);
        assert.deepEqual(valuesOf(reply)[0]?.values, [i, -i].map(backendCase.expected));
        reply.release?.();
      }
    }));

  test(`${backend.name}: a cancellation, in time or not, leaves the instance usable`, () =>
    withInstance(async (instance) => {
      instance.cancel(99);
      const pending = instance.execute(makeBatch(1, [makeRequest([1, 2])]), noSender);
      instance.cancel(1);
      const reply = await pending;
      assert.equal(reply.results.length, 1);
      const [result] = reply.results;
      if (result instanceof StatusError) assert.equal(result.code, 'CANCELLED');
      reply.release?.();
      const next = await instance.execute(makeBatch(2, [makeRequest([3, 4])]), noSender);
      assert.deepEqual(valuesOf(next)[0]?.values, [3, 4].map(backendCase.expected));
      next.release?.();
    }));

  test(`${backend.name}: two instances of one file do not disturb each other, and close ends one alone`, () =>
    withInstance(async (first) => {
      await withInstance(async (second) => {
        const replies = await Promise.all(
          [first, second].map((instance, i) =>
            instance.execute(makeBatch(1, [makeRequest([i, i])]), noSender),
          ),
        );
        assert.deepEqual(
          replies.map((reply) => valuesOf(reply)[0]?.values[0]),
          [0, 1].map(backendCase.expected),
        );
        for (const reply of replies) reply.release?.();
      });
      const reply = await first.execute(makeBatch(2, [makeRequest([9, 9])]), noSender);
      assert.deepEqual(valuesOf(reply)[0]?.values, [9, 9].map(backendCase.expected));
      reply.release?.();
    }));
}

export function makeRequest(values: readonly number[]): SentRequest {
  const data = Buffer.from(Float32Array.from(values).buffer);
  return {
    inputs: [{ index: 0, shape: [values.length / 2, 2], data: [data], byteLength: data.length }],
    requestedOutputs: [],
  };
}

function noSender(): never {
  throw new Error('the backend asked for a sender');
}

/** Through the real frame, so that the payload lies as a host would see it. */
function makeBatch(id: number, requests: readonly SentRequest[]): ExecuteBatch {
  let batch: ExecuteBatch | undefined;
  const reader = new FrameReader({
    isContiguous: true,
    onFrame: (frame) => {
      batch = decodeExecuteFrame(frame.header, frame.payload[0] ?? Buffer.alloc(0));
    },
  });
  for (const part of encodeExecuteFrame(id, requests)) reader.push(part);
  return batch!;
}

function valuesOf(reply: ExecuteReply): { shape: number[]; values: number[] }[] {
  return reply.results.map((result) => {
    if (result instanceof StatusError) throw result;
    assert.ok(typeof result !== 'symbol');
    const { shape, data } = result[0]!;
    const bytes = Uint8Array.from(data);
    return { shape: [...shape], values: [...new Float32Array(bytes.buffer)] };
  });
}
