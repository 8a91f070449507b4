// Unit tests of a request whose tensors lie in shared memory, from its ranges to the end of its sink.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { MemoryRange } from '../../domain/memory-range.ts';
import type { InferRequest, InferResponse, ResponseSink } from '../../domain/request.ts';
import { internal, type StatusError } from '../../domain/status.ts';
import { contiguous, type OutputTensor } from '../../domain/tensor.ts';
import type { InferCall } from '../infer.ts';
import { inferShared } from './infer-shared.ts';
import { SharedMemory } from './shared-memory.ts';
import { createObject, shmSkip } from './test-object.ts';

const LARGE = 3 * 1024 * 1024;

/** A sink that writes down what it is told. */
class NotedSink implements ResponseSink {
  readonly said: string[] = [];
  readonly responses: InferResponse[] = [];
  readonly ended: Promise<void>;
  #end: () => void = () => {};

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    this.responses.push(response);
    this.said.push(`send ${isFinal}`);
    return false;
  }

  sendError(error: StatusError): boolean {
    this.said.push(`error ${error.message}`);
    return false;
  }

  finish(): void {
    this.said.push('finish');
    this.#end();
  }

  fail(error: StatusError): void {
    this.said.push(`fail ${error.message}`);
    this.#end();
  }
}

const request = (byteLength: number): InferRequest => ({
  id: '',
  inputs: [
    { name: 'A', datatype: 'UINT8', shape: [2], data: [Buffer.from('hi')], byteLength: 2 },
    { name: 'B', datatype: 'UINT8', shape: [byteLength], data: [], byteLength },
  ],
  requestedOutputs: [],
  parameters: undefined,
  correlationId: 0n,
  sequenceFlags: 0,
  priority: 0,
  timeoutUs: 0,
  isRaw: false,
});

const output = (name: string, data: Buffer): OutputTensor => ({
  name,
  datatype: 'UINT8',
  shape: [data.length],
  data: [data],
  byteLength: data.length,
});

const response = (...outputs: OutputTensor[]): InferResponse => ({
  modelName: 'm',
  modelVersion: 1,
  id: '',
  parameters: undefined,
  outputs,
});

describe('a request in shared memory', { skip: shmSkip }, () => {
  const memory = new SharedMemory({ isAllowed: true, allowedPrefixes: undefined, hasGpu: false });
  const object = createObject(Buffer.alloc(4 * LARGE, 'abcdefg'));
  memory.registerSystem({ name: 'r', key: object.key, offset: 0, byteSize: 4 * LARGE });
  after(() => {
    memory.close();
    object.remove();
  });

  const begin = (options: {
    input: MemoryRange;
    output?: MemoryRange;
    isDecoupled?: boolean;
    infer?: (call: InferCall) => void;
  }) => {
    const sink = new NotedSink();
    const calls: InferCall[] = [];
    const refused: StatusError[] = [];
    inferShared({
      memory,
      ranges: {
        inputs: new Map([[1, options.input]]),
        outputs: options.output === undefined ? undefined : new Map([['Y', options.output]]),
      },
      isDecoupled: options.isDecoupled ?? false,
      call: {
        request: request(Number(options.input.byteSize)),
        sink,
        cancellation: undefined,
        trace: undefined,
      },
      infer: options.infer ?? ((call) => calls.push(call)),
      onRefused: (error) => refused.push(error),
    });
    return { sink, calls, refused };
  };

  const range = (offset: number, byteSize: number): MemoryRange => ({ region: 'r', offset, byteSize });

  test('starts at once with its small inputs read, and those it carried left alone', () => {
    const { calls, sink } = begin({ input: range(7, 3) });
    const inputs = calls[0]?.request.inputs.map((input) => contiguous(input.data).toString());
    assert.deepEqual(inputs, ['hi', 'abc']);
    calls[0]?.sink.fail(internal('no'));
    assert.deepEqual(sink.said, ['fail no']);
  });

  test('writes its outputs before it is answered, and keeps the others', () => {
    const { calls, sink } = begin({ input: range(0, 1), output: range(LARGE, 8) });
    const isRoom = calls[0]?.sink.send(
      response(output('X', Buffer.from('x')), output('Y', Buffer.from('123'))),
      true,
    );
    assert.equal(isRoom, false);
    calls[0]?.sink.finish();
    assert.deepEqual(sink.said, ['send true', 'finish']);
    assert.equal(object.bytes().toString('latin1', LARGE, LARGE + 3), '123');
    assert.deepEqual(
      sink.responses[0]?.outputs.map(({ name, byteLength, data }) => [name, byteLength, data.length]),
      [
        ['X', 1, 1],
        ['Y', 0, 0],
      ],
    );
  });

  test('keeps the order when a large output takes a while', async () => {
    const { calls, sink } = begin({ input: range(0, 1), output: range(LARGE, LARGE) });
    const large = Buffer.alloc(LARGE, 'Z');
    calls[0]?.sink.send(response(output('Y', large)), false);
    calls[0]?.sink.send(response(output('Y', Buffer.from('small'))), true);
    calls[0]?.sink.finish();
    assert.deepEqual(sink.said, []);
    await sink.ended;
    assert.deepEqual(sink.said, ['send false', 'send true', 'finish']);
    assert.equal(object.bytes().toString('latin1', LARGE, LARGE + 7), 'smallZZ');
  });

  test('reads large inputs before it starts', async () => {
    const { calls, refused } = begin({ input: range(0, LARGE) });
    assert.equal(calls.length, 0);
    while (calls.length === 0 && refused.length === 0) await new Promise(setImmediate);
    const data = contiguous(calls[0]!.request.inputs[1]!.data);
    assert.ok(data.equals(object.bytes().subarray(0, LARGE)));
    calls[0]?.sink.finish();
  });

  test('fails when an output has too little room', () => {
    const { calls, sink } = begin({ input: range(0, 1), output: range(0, 20) });
    calls[0]?.sink.send(response(output('Y', Buffer.alloc(24))), true);
    calls[0]?.sink.finish();
    assert.deepEqual(sink.said, [
      "fail shared memory size specified with the request for output 'Y' (20 bytes) should be at least 24 bytes to hold the results",
    ]);
  });

  test('of a decoupled model goes on after such a response', () => {
    const { calls, sink } = begin({ input: range(0, 1), output: range(0, 4), isDecoupled: true });
    calls[0]?.sink.send(response(output('Y', Buffer.alloc(5))), false);
    calls[0]?.sink.send(response(output('Y', Buffer.alloc(4))), true);
    calls[0]?.sink.finish();
    assert.match(sink.said[0] ?? '', /^error shared memory size/);
    assert.deepEqual(sink.said.slice(1), ['send true', 'finish']);
  });

  test('lets go of its ranges at its end, however it ends', async () => {
    const one = createObject(Buffer.alloc(LARGE));
    const register = () => memory.registerSystem({ name: 'one', key: one.key, offset: 0, byteSize: LARGE });
    const held: MemoryRange = { region: 'one', offset: 0, byteSize: 8 };
    const refuse = (): void => {
      throw internal('refused');
    };
    const isGone = () => memory.systemStatus('').every(({ name }) => name !== 'one');

    register();
    assert.throws(() => begin({ input: held, infer: refuse }), { message: 'refused' });
    const wrong = { region: 'nobody', offset: 0, byteSize: 1 };
    assert.throws(() => begin({ input: held, output: wrong }), { code: 'NOT_FOUND' });
    const { refused } = begin({ input: { ...held, byteSize: LARGE }, infer: refuse });
    while (refused.length === 0) await new Promise(setImmediate);
    assert.equal(refused[0]?.message, 'refused');
    memory.unregisterSystem('one');
    assert.ok(isGone());

    register();
    const { calls } = begin({ input: held });
    memory.unregisterSystem('one');
    assert.ok(!isGone());
    calls[0]?.sink.finish();
    assert.ok(isGone());
    one.remove();
  });
});
