// The square backend without a host: n answers to n.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BY_SENDER, type ExecuteOutput, type ResponseSender } from '../../backend/sdk.ts';
import { createMessage } from '../../domain/message-value.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import type { StatusError } from '../../domain/status.ts';
import { squareBackend } from './square-backend.ts';

function makeConfig(
  options: { isDecoupled?: boolean; inputCount?: number; delayNs?: string } = {},
): ModelConfig {
  const { isDecoupled = true, inputCount = 1, delayNs } = options;
  return {
    ...(createMessage('ModelConfig') as unknown as ModelConfig),
    input: Array.from({ length: inputCount }, () => createMessage('ModelInput') as unknown as ModelInput),
    output: [createMessage('ModelOutput') as unknown as ModelOutput],
    parameters: delayNs === undefined ? {} : { CUSTOM_INFER_DELAY_NS: { string_value: delayNs } },
    model_transaction_policy: { decoupled: isDecoupled },
  };
}

function load(config: ModelConfig) {
  return squareBackend.load({
    modelName: 'square',
    version: 1,
    modelDirectory: '',
    versionDirectory: '',
    config,
    isAutoComplete: false,
    backendConfig: {},
    placement: { name: 'square_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
    log: () => {},
  });
}

/** The values sent for each of the inputs; `stopAfter` responses the client goes away. */
async function answersTo(
  inputs: readonly Buffer[],
  options: { stopAfter?: number; config?: ModelConfig } = {},
): Promise<number[][]> {
  const config = options.config ?? makeConfig();
  const instance = await (await load(config)).start(config);
  const answers: number[][] = inputs.map(() => []);
  const ends: Promise<void>[] = [];
  let offset = 0;
  const requests = inputs.map((data) => {
    const input = { index: 0, shape: [1], offset, byteLength: data.length };
    offset += data.length;
    return { inputs: [input], requestedOutputs: [] };
  });
  const batch = { id: 1, payload: Buffer.concat(inputs), requests };
  const senderOf = (request: number): ResponseSender => {
    let onEnd: () => void = () => {};
    ends.push(
      new Promise((resolve) => {
        onEnd = resolve;
      }),
    );
    return {
      get isCancelled() {
        return answers[request]!.length >= (options.stopAfter ?? Number.POSITIVE_INFINITY);
      },
      hasRoom: true,
      whenRoom: () => Promise.resolve(),
      send: (response: readonly ExecuteOutput[] | StatusError) => {
        answers[request]!.push((response as readonly ExecuteOutput[])[0]!.data.readInt32LE());
      },
      finish: () => onEnd(),
    };
  };
  const reply = await instance.execute(batch, senderOf);
  assert.deepEqual(
    reply.results,
    inputs.map(() => BY_SENDER),
  );
  await Promise.all(ends);
  return answers;
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

test('n is answered n times, zero and less not at all', async () => {
  assert.deepEqual(await answersTo([word(3), word(0), word(-5), word(1)]), [[3, 3, 3], [], [], [1]]);
});

test('an input without elements is no number', async () => {
  assert.deepEqual(await answersTo([Buffer.alloc(0)]), [[]]);
});

test('it stops when the client has gone', async () => {
  assert.deepEqual(await answersTo([word(1_000_000)], { stopAfter: 2 }), [[1_000_000, 1_000_000]]);
});

test('it waits before each response as the config says', async () => {
  const startMs = performance.now();
  await answersTo([word(3)], { config: makeConfig({ delayNs: '20000000' }) });
  assert.ok(performance.now() - startMs >= 55);
});

test('a config that is not decoupled or has other tensors is refused', async () => {
  await assert.rejects(load(makeConfig({ isDecoupled: false })), /decoupled model_transaction_policy/);
  await assert.rejects(load(makeConfig({ inputCount: 2 })), /one input and one output/);
});
