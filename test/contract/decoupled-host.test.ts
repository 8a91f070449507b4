// A decoupled model in a real host process: parts, their end, pauses by FLOW and cancellation.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BY_SENDER } from '../../src/backend/sdk.ts';
import { StatusError } from '../../src/domain/status.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import { Instance } from '../../src/instance/instance.ts';
import type { ReceivedPart } from '../../src/instance/part-frame.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';
import { waitUntil } from '../support/load.ts';
import { HOST } from '../support/paths.ts';
import { NO_CALLS } from './watched-instance.ts';

const CONFIG = `name: "m" backend: "repeat" max_batch_size: 0
  model_transaction_policy { decoupled: true }
  input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
          { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
          { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
  output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
           { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ]`;
/** More than a host sends before it hears a pause. */
const MANY = 1_000_000;

describe('node host with a decoupled model', () => {
  const parts = new Map<string, ReceivedPart[]>();
  const replies = new Map<number, ReceivedReply>();
  let lostCount = 0;
  const instance = new Instance({
    command: { file: process.execPath, args: [HOST] },
    load: {
      backend: 'repeat',
      modelName: 'm',
      version: 1,
      modelDirectory: '',
      versionDirectory: '',
      config: parseModelConfig(CONFIG),
      isAutoComplete: false,
      backendConfig: {},
      placement: { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
    },
    events: {
      ...NO_CALLS,
      onRequestCancelled: () => {},
      onReply: (_, reply) => replies.set(reply.batchId, reply),
      onPart: (_, part) => partsOf(part.batchId, part.request).push(part),
      onLost: () => {
        lostCount++;
      },
      onStateChange: () => {},
      onLog: () => {},
    },
  });

  before(async () => instance.start(await instance.load(), []));
  after(() => instance.stop());

  function partsOf(batchId: number, request: number): ReceivedPart[] {
    const key = `${batchId}.${request}`;
    const found = parts.get(key) ?? [];
    parts.set(key, found);
    return found;
  }

  const isEnded = (batchId: number, request = 0) => partsOf(batchId, request).at(-1)?.isFinal === true;

  async function pausedLength(batchId: number): Promise<number> {
    await sleep(200);
    const { length } = partsOf(batchId, 0);
    await sleep(200);
    assert.equal(partsOf(batchId, 0).length, length, 'parts go on coming');
    return length;
  }

  test('sends parts in order, the final flag last, beside the RESPONSE', async () => {
    instance.execute(1, [repeat(3), repeat(0), repeat(1, 50)]);
    assert.ok(await waitUntil(() => [0, 1, 2].every((request) => isEnded(1, request))));
    assert.deepEqual(replies.get(1)?.results, [BY_SENDER, BY_SENDER, BY_SENDER]);
    assert.equal(instance.inFlightCount, 0);
    assert.deepEqual(partsOf(1, 0).map(indexOf), [0, 1, 2, undefined]);
    assert.deepEqual(partsOf(1, 1).map(indexOf), [undefined]);
    assert.deepEqual(partsOf(1, 2).map(indexOf), [0, undefined]);
  });

  test('a request that the model refuses ends with the error, alone', async () => {
    const wrong = repeat(2);
    instance.execute(2, [{ ...wrong, inputs: [wrong.inputs[0]!, ...repeat(1).inputs.slice(1)] }, repeat(1)]);
    assert.ok(await waitUntil(() => isEnded(2, 0) && isEnded(2, 1)));
    assert.equal(partsOf(2, 0).length, 1);
    assert.ok(partsOf(2, 0)[0]!.result instanceof StatusError);
    assert.deepEqual(partsOf(2, 1).map(indexOf), [0, undefined]);
  });

  test('pauses and goes on by FLOW; others are not held', async () => {
    instance.execute(3, [repeat(MANY)]);
    assert.ok(await waitUntil(() => partsOf(3, 0).length > 0));
    instance.setPaused(3, 0, true);
    const length = await pausedLength(3);
    assert.ok(length < MANY, 'everything came before the pause');
    instance.execute(4, [repeat(2)]);
    assert.ok(await waitUntil(() => isEnded(4)));
    instance.setPaused(3, 0, false);
    assert.ok(await waitUntil(() => partsOf(3, 0).length > length));
  });

  test('stops soon after a cancellation, with an end, also when it is paused', async () => {
    instance.cancel(3, 0);
    assert.ok(await waitUntil(() => isEnded(3)));
    assert.ok(partsOf(3, 0).length < MANY);
    instance.execute(5, [repeat(MANY)]);
    assert.ok(await waitUntil(() => partsOf(5, 0).length > 0));
    instance.setPaused(5, 0, true);
    const length = await pausedLength(5);
    instance.cancel(5, 0);
    assert.ok(await waitUntil(() => isEnded(5)));
    assert.ok(partsOf(5, 0).length <= length + 2);
    instance.execute(6, [repeat(1)]);
    assert.ok(await waitUntil(() => isEnded(6)));
    assert.equal(lostCount, 0);
  });
});

function repeat(count: number, delayMs = 0): SentRequest {
  const input = (index: number, values: Uint32Array) => {
    const data = Buffer.from(values.buffer);
    return { index, shape: [values.length], data: [data], byteLength: data.length };
  };
  return {
    inputs: [
      input(
        0,
        Uint32Array.from({ length: count }, (_, i) => i),
      ),
      input(1, new Uint32Array(count).fill(delayMs)),
      input(2, new Uint32Array(1)),
    ],
    requestedOutputs: [],
  };
}

/** IDX of a part; undefined without content. */
function indexOf({ result }: ReceivedPart): number | undefined {
  if (typeof result === 'symbol') return undefined;
  assert.ok(!(result instanceof StatusError));
  return Buffer.concat(result.outputs.find(({ index }) => index === 1)!.data).readUInt32LE();
}
