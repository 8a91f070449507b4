// A host's calls, against the frames that the server reads and the results that it sends.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServerInferCall } from '../backend/server-calls.ts';
import { StatusError } from '../domain/status.ts';
import type { CallMessage, ResultMessage } from './call-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { HostCallsClient } from './host-calls-client.ts';
import { FRAME_CALL, FRAME_CALL_CANCEL, FRAME_CALL_FLOW } from './protocol.ts';

const CALL: ServerInferCall = {
  parent: { batchId: 7, request: 1 },
  model: 'm',
  version: -1,
  id: 'r',
  correlationId: 0,
  flags: 0,
  priority: 0,
  timeoutUs: 0,
  parameters: new Map([['n', 5n]]),
  requestedOutputs: ['Y'],
  inputs: [
    { name: 'A', datatype: 'UINT8', shape: [3], data: Buffer.from('abc') },
    { name: 'B', datatype: 'UINT8', shape: [2], data: Buffer.from('de') },
  ],
  isStream: true,
};

function makeClient() {
  const frames: Frame[] = [];
  const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => frames.push(frame) });
  const client = new HostCallsClient((parts) => {
    for (const part of parts) reader.push(part);
  });
  const messageOf = (index: number) => JSON.parse(frames[index]!.header.toString()) as CallMessage;
  return { client, frames, messageOf };
}

function collect(client: HostCallsClient) {
  const heard: unknown[] = [];
  const open = client.infer(CALL, {
    onResponse: (response) => heard.push(response),
    onEnd: (error) => heard.push(error ?? 'end'),
  });
  return { heard, open };
}

test('an inference: its frame, its responses, its end', () => {
  const { client, frames, messageOf } = makeClient();
  const { heard } = collect(client);
  const { type, payload } = frames[0]!;
  assert.equal(type, FRAME_CALL);
  const message = messageOf(0);
  assert.ok(message.kind === 'infer');
  assert.deepEqual(message.parent, { batchId: 7, request: 1 });
  assert.deepEqual(message.parameters, { n: { int64: '5' } });
  const texts = message.inputs.map(({ offset, byteLength }) =>
    payload[0]!.toString('latin1', offset, offset + byteLength),
  );
  assert.deepEqual(texts, ['abc', 'de']);
  const result: ResultMessage = {
    callId: message.callId,
    isFinal: false,
    response: {
      model: 'm',
      version: 3,
      id: 'r',
      parameters: { b: { bool: true } },
      outputs: [{ name: 'Y', datatype: 'UINT8', shape: [1], offset: 1, byteLength: 1 }],
    },
  };
  client.onResult(result, Buffer.from('xyz'));
  const error = { code: 'UNAVAILABLE', message: 'one failed' } as const;
  client.onResult({ callId: message.callId, isFinal: false, error }, Buffer.alloc(0));
  client.onResult({ callId: message.callId, isFinal: true }, Buffer.alloc(0));
  client.onResult({ callId: message.callId, isFinal: true }, Buffer.alloc(0));
  assert.deepEqual(heard, [
    {
      model: 'm',
      version: 3,
      id: 'r',
      parameters: new Map([['b', true]]),
      outputs: [{ name: 'Y', datatype: 'UINT8', shape: [1], data: Buffer.from('y') }],
    },
    new StatusError('UNAVAILABLE', 'one failed'),
    'end',
  ]);
});

test('cancel and pause are told while the call is open, and not after it', () => {
  const { client, frames, messageOf } = makeClient();
  const { heard, open } = collect(client);
  const { callId } = messageOf(0);
  open.setPaused(true);
  open.cancel();
  assert.deepEqual(
    frames.slice(1).map(({ type, header }) => [type, JSON.parse(header.toString())]),
    [
      [FRAME_CALL_FLOW, { callId, isPaused: true }],
      [FRAME_CALL_CANCEL, { callId }],
    ],
  );
  const error = { code: 'CANCELLED', message: '' } as const;
  client.onResult({ callId, isFinal: true, error }, Buffer.alloc(0));
  open.cancel();
  assert.equal(frames.length, 3);
  assert.deepEqual(heard, [new StatusError('CANCELLED', '')]);
});

test('load, unload, readiness and metrics: one result each', async () => {
  const { client, frames, messageOf } = makeClient();
  const files = [{ path: '1/model.onnx', content: Buffer.from('bytes') }];
  const family = { name: 'n', help: 'h', type: 'gauge' } as const;
  const pending = [
    client.load('m', { config: '{}', files }),
    client.unload('m'),
    client.isReady('m', '2'),
    client.metric({ family, labels: {}, buckets: [], action: 'set', value: 2 }),
  ];
  const results: Partial<ResultMessage>[] = [
    {},
    { error: { code: 'NOT_FOUND', message: 'no such model' } },
    { value: true },
    { value: 2 },
  ];
  results.forEach((result, i) => {
    client.onResult({ callId: messageOf(i).callId, isFinal: true, ...result }, Buffer.alloc(0));
  });
  const settled = await Promise.allSettled(pending);
  assert.deepEqual(
    settled.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
    [undefined, 'StatusError: no such model', true, 2],
  );
  const load = messageOf(0);
  assert.ok(load.kind === 'load');
  assert.deepEqual(load.files, [{ path: '1/model.onnx', offset: 0, byteLength: 5 }]);
  assert.equal(frames[0]!.payload[0]!.toString(), 'bytes');
  assert.equal(new Set([0, 1, 2, 3].map((i) => messageOf(i).callId)).size, 4);
});
