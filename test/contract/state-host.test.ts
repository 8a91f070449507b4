// Implicit state through a real host process: kept between batches, by slot, and gone with the host.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, beforeEach, test } from 'node:test';
import type { StateSlot } from '../../src/backend/sdk.ts';
import { TEST_MODELS } from '../../src/backends/onnxruntime/test-models.ts';
import type { SentRequest } from '../../src/instance/execute-frame.ts';
import { Instance } from '../../src/instance/instance.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';
import { HOST } from '../support/paths.ts';
import { NO_CALLS } from './watched-instance.ts';

const CONFIG = `name: "m" backend: "onnxruntime" max_batch_size: 4
  input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
  sequence_batching {
    control_input [
      { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
      { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] } ]
    state [ { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ]
              initial_state: { name: "hundred" data_type: TYPE_INT32 dims: [ 1 ] data_file: "hundred" } } ]
  }`;

const directory = mkdtempSync(join(tmpdir(), 'nereid-state-'));
after(() => rmSync(directory, { recursive: true }));
for (const folder of ['1', 'initial_state']) mkdirSync(join(directory, folder));
writeFileSync(join(directory, '1', 'model.onnx'), Buffer.from(TEST_MODELS.SEQ_ACCUMULATE, 'base64'));
writeFileSync(join(directory, 'initial_state', 'hundred'), int32(100));

let instance: Instance;
let replies: Map<number, (reply: ReceivedReply) => void>;
let isReadyAgain: Promise<void>;

beforeEach(async () => {
  replies = new Map();
  let tellReady: () => void;
  isReadyAgain = new Promise((resolve) => {
    tellReady = resolve;
  });
  let isLost = false;
  instance = new Instance({
    command: { file: process.execPath, args: [HOST] },
    load: {
      backend: 'onnxruntime',
      modelName: 'm',
      version: 1,
      modelDirectory: directory,
      versionDirectory: join(directory, '1'),
      config: parseModelConfig(CONFIG),
      isAutoComplete: true,
      backendConfig: {},
      placement: { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
    },
    events: {
      ...NO_CALLS,
      onRequestCancelled: () => {},
      onReply: (_, reply) => replies.get(reply.batchId)?.(reply),
      onPart: () => {},
      onLost: () => {
        isLost = true;
      },
      onStateChange: ({ state }) => {
        if (isLost && state === 'ready') tellReady();
      },
      onLog: () => {},
    },
  });
  await instance.start(await instance.load(), []);
});

afterEach(() => instance.stop());

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

/** Controls follow the input; both are 0, so that only the state tells what came before. */
function makeRequest(value: number, state: StateSlot | undefined): SentRequest {
  return {
    inputs: [value, 0, 0].map((element, index) => {
      return { index, shape: [1, 1], data: [int32(element)], byteLength: 4 };
    }),
    requestedOutputs: [],
    state,
  };
}

function execute(batchId: number, ...steps: [number, StateSlot | undefined][]): Promise<(number | string)[]> {
  return new Promise((resolve) => {
    replies.set(batchId, ({ results }) => resolve(results.map(readResult)));
    instance.execute(
      batchId,
      steps.map(([value, state]) => makeRequest(value, state)),
    );
  });
}

function readResult(result: ReceivedReply['results'][number]): number | string {
  if (typeof result === 'symbol') return 'by sender';
  if (!('outputs' in result)) return result.message;
  assert.deepEqual(
    result.outputs.map(({ index }) => index),
    [0],
  );
  return Buffer.concat(result.outputs[0]!.data).readInt32LE();
}

const START: StateSlot = { slot: 0, isStart: true, isEnd: false };
const NEXT: StateSlot = { slot: 0, isStart: false, isEnd: false };
const OTHER: StateSlot = { slot: 3, isStart: true, isEnd: false };

test('batches that are sent ahead go on from each other, and slots do not mix', async () => {
  const answers = [execute(1, [1, START]), execute(2, [10, OTHER], [1, NEXT], [7, undefined])];
  assert.deepEqual(await Promise.all(answers), [[101], [110, 102, 7]]);
  assert.deepEqual(await execute(3, [1, { ...NEXT, isEnd: true }]), [103]);
});

test('a request that is cancelled while it runs or waits still moves its sequence on', async () => {
  const answers = [execute(1, [1, START]), execute(2, [1, NEXT]), execute(3, [1, NEXT])];
  for (const batchId of [1, 2, 3]) instance.cancel(batchId, 0);
  await Promise.all(answers);
  assert.deepEqual(await execute(4, [1, NEXT]), [104]);
});

test('a new host does not know the states of the old one, and says so', async () => {
  assert.deepEqual(await execute(1, [1, START]), [101]);
  process.kill(instance.pid!, 'SIGKILL');
  await isReadyAgain;
  const [message] = await execute(2, [1, NEXT]);
  assert.match(String(message), /the state of the sequence was lost .* start the sequence again/);
  assert.deepEqual(await execute(3, [1, START]), [101]);
});
