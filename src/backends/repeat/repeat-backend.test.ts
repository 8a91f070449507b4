// The repeat backend without a host: what it sends, when, and what it refuses.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type BackendInstance,
  BY_SENDER,
  type ExecuteBatch,
  type ExecuteOutput,
  type ResponseSender,
} from '../../backend/sdk.ts';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import { repeatBackend } from './repeat-backend.ts';

function makeConfig(options: { isDecoupled?: boolean; inputs?: readonly string[] } = {}): ModelConfig {
  const { isDecoupled = true, inputs = ['IN', 'DELAY', 'WAIT'] } = options;
  return {
    ...(createMessage('ModelConfig') as unknown as ModelConfig),
    input: inputs.map((name) => ({ ...createMessage('ModelInput'), name }) as unknown as ModelInput),
    output: ['IDX', 'OUT'].map(
      (name) => ({ ...createMessage('ModelOutput'), name }) as unknown as ModelOutput,
    ),
    model_transaction_policy: { decoupled: isDecoupled },
  };
}

function load(config: ModelConfig) {
  return repeatBackend.load({
    modelName: 'repeat',
    version: 1,
    modelDirectory: '',
    versionDirectory: '',
    config,
    isAutoComplete: false,
    backendConfig: {},
    placement: { name: 'repeat_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
    log: () => {},
  });
}

async function start(): Promise<BackendInstance> {
  const config = makeConfig();
  return (await load(config)).start(config);
}

/** Inputs by index: IN, DELAY, WAIT; undefined is left out. */
function makeBatch(...requests: (Buffer | undefined)[][]): ExecuteBatch {
  const pieces: Buffer[] = [];
  let offset = 0;
  const made = requests.map((inputs) => ({
    requestedOutputs: [],
    inputs: inputs.flatMap((data, index) => {
      if (data === undefined) return [];
      pieces.push(data);
      const input = { index, shape: [data.length / 4], offset, byteLength: data.length };
      offset += data.length;
      return [input];
    }),
  }));
  return { id: 1, payload: Buffer.concat(pieces), requests: made };
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeInt32LE(value, i * 4);
  return bytes;
}

class NotedSender implements ResponseSender {
  readonly hasRoom = true;
  readonly sent: string[] = [];
  isCancelled = false;
  readonly ended: Promise<void>;
  #onEnd: () => void = () => {};
  room: Promise<void> = Promise.resolve();

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  whenRoom(): Promise<void> {
    return this.room;
  }

  send(response: readonly ExecuteOutput[] | StatusError, isFinal: boolean): void {
    this.sent.push(
      response instanceof StatusError
        ? `${response.code} ${response.message}`
        : response.map(({ index, data }) => `${index}=${data.readInt32LE()}`).join(' '),
    );
    if (isFinal) this.finish();
  }

  finish(): void {
    this.sent.push('end');
    this.#onEnd();
  }
}

async function run(batch: ExecuteBatch): Promise<{ senders: NotedSender[]; results: readonly unknown[] }> {
  const instance = await start();
  const senders = batch.requests.map(() => new NotedSender());
  const reply = await instance.execute(batch, (request) => senders[request]!);
  await Promise.all(senders.map(({ ended }) => ended));
  return { senders, results: reply.results };
}

describe('repeat', () => {
  test('sends each element with its index, in order, then the end', async () => {
    const { senders, results } = await run(
      makeBatch([words(7, -1, 9), words(0, 2, 0), words(0)], [words(), words(), words(0)]),
    );
    assert.deepEqual(senders[0]!.sent, ['1=7 0=0', '1=-1 0=1', '1=9 0=2', 'end']);
    assert.deepEqual(senders[1]!.sent, ['end']);
    assert.deepEqual(results, [BY_SENDER, BY_SENDER]);
  });

  test('holds its instance for WAIT while responses go on', async () => {
    const instance = await start();
    const sender = new NotedSender();
    const startMs = performance.now();
    await instance.execute(makeBatch([words(1, 2), words(0, 150), words(50)]), () => sender);
    assert.ok(performance.now() - startMs >= 45);
    assert.deepEqual(sender.sent, ['1=1 0=0']);
    await sender.ended;
    assert.deepEqual(sender.sent, ['1=1 0=0', '1=2 0=1', 'end']);
  });

  test('waits for room and stops when nobody reads', async () => {
    const instance = await start();
    const sender = new NotedSender();
    let open: () => void = () => {};
    sender.room = new Promise((resolve) => {
      open = resolve;
    });
    await instance.execute(makeBatch([words(1, 2, 3), words(0, 0, 0), words(0)]), () => sender);
    await sleep(10);
    assert.deepEqual(sender.sent, []);
    sender.isCancelled = true;
    open();
    await sender.ended;
    assert.ok(sender.sent.length <= 2, sender.sent.join());
  });

  test('refuses a request that it cannot serve, and serves the others', async () => {
    const { senders } = await run(
      makeBatch(
        [words(1, 2), words(0), words(0)],
        [undefined, words(0), words(0)],
        [words(1), words(0), undefined],
        [Buffer.alloc(3), words(0), words(0)],
        [words(5), words(0), words(0)],
      ),
    );
    assert.deepEqual(senders[0]!.sent, [
      'INVALID_ARG expected IN and DELAY shape to match, got [2] and [1]',
      'end',
    ]);
    for (const sender of senders.slice(1, 3)) {
      assert.deepEqual(sender.sent, ['INVALID_ARG repeat backend expects IN, DELAY and WAIT', 'end']);
    }
    assert.match(senders[3]!.sent[0]!, /^INTERNAL /);
    assert.deepEqual(senders[4]!.sent, ['1=5 0=0', 'end']);
  });
});

test('a config that is not decoupled or lacks a tensor is refused', async () => {
  await assert.rejects(load(makeConfig({ isDecoupled: false })), /decoupled model_transaction_policy/);
  await assert.rejects(load(makeConfig({ inputs: ['IN', 'WAIT'] })), /expects inputs IN, DELAY and WAIT/);
});
