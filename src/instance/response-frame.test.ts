// Random answers through the RESPONSE frame, received in chunks that end anywhere.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BY_SENDER, type ExecuteOutput, type ExecuteReply, type ExecuteResult } from '../backend/sdk.ts';
import { STATUS_CODES, StatusError } from '../domain/status.ts';
import type { Lease } from '../lib/chunk-pool.ts';
import { createPrng, type Prng } from '../lib/prng.ts';
import { FrameReader } from './frame-reader.ts';
import { FRAME_RESPONSE, PREAMBLE_BYTES } from './protocol.ts';
import { decodeResponseFrame, encodeResponseFrame, type ReceivedReply } from './response-frame.ts';
import { RESCHEDULE, type ReceivedOutputs } from './result-codec.ts';

function randomOutput(prng: Prng, bytesMax: number): ExecuteOutput {
  return {
    index: prng.integer(0, 65_535),
    shape: Array.from({ length: prng.integer(0, 5) }, () => prng.pick([0, 1, 7, 2 ** 40])),
    data: Buffer.alloc(prng.integer(0, bytesMax), prng.integer(1, 255)),
  };
}

function randomReply(prng: Prng): ExecuteReply {
  const bytesMax = prng.pick([10, 300, 60_000]);
  const results = Array.from({ length: prng.integer(0, 6) }, (): ExecuteResult => {
    if (prng.boolean(0.1)) return BY_SENDER;
    if (prng.boolean(0.2))
      return new StatusError(prng.pick(STATUS_CODES), prng.pick(['', 'bad größe', 'x'.repeat(300)]));
    return Array.from({ length: prng.integer(0, 3) }, () => randomOutput(prng, bytesMax));
  });
  return { results, computeInputNs: 1, computeInferNs: prng.integer(0, 2 ** 50), computeOutputNs: 3.4 };
}

function receive(prng: Prng, parts: readonly Buffer[]): ReceivedReply {
  const replies: ReceivedReply[] = [];
  const reader = new FrameReader({
    isContiguous: false,
    onFrame: (frame) => {
      assert.equal(frame.type, FRAME_RESPONSE);
      replies.push(decodeResponseFrame(frame.header, frame.payload));
    },
  });
  const bytes = Buffer.concat(parts);
  for (let at = 0; at < bytes.length; ) {
    const length = prng.integer(1, 20_000);
    reader.push(bytes.subarray(at, at + length));
    at += length;
  }
  assert.equal(replies.length, 1);
  return replies[0]!;
}

test('random answers come out as they went in', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const prng = createPrng(seed);
    const sent = randomReply(prng);
    const batchId = prng.uint32();
    const received = receive(prng, encodeResponseFrame(batchId, sent));
    assert.equal(received.batchId, batchId);
    assert.deepEqual(
      [received.computeInputNs, received.computeInferNs, received.computeOutputNs],
      [1, sent.computeInferNs, 3],
    );
    assert.equal(received.results.length, sent.results.length);
    received.results.forEach((result, r) => {
      const expected = sent.results[r]!;
      if (expected === BY_SENDER || result === BY_SENDER) {
        assert.equal(result, expected);
        return;
      }
      if (expected instanceof StatusError || result instanceof StatusError) {
        assert.ok(expected instanceof StatusError && result instanceof StatusError, `seed ${seed}`);
        assert.equal(result.describe(), expected.describe());
        return;
      }
      assert.ok(typeof result !== 'symbol', `seed ${seed}`);
      assert.deepEqual(
        result.outputs.map(({ index, shape, data }) => ({ index, shape, data: Buffer.concat(data) })),
        expected,
        `seed ${seed}`,
      );
      for (const output of result.outputs) assert.equal(output.byteLength, Buffer.concat(output.data).length);
    });
  }
});

test('a host may ask to execute a request once more', () => {
  const results: ExecuteResult[] = [BY_SENDER, BY_SENDER];
  const frame = encodeResponseFrame(7, { results, computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 });
  const header = Buffer.concat(frame).subarray(PREAMBLE_BYTES);
  // The last result, which is one byte long.
  header.writeUInt8(3, 33);
  assert.deepEqual(decodeResponseFrame(header, []).results, [BY_SENDER, RESCHEDULE]);
});

test('the memory of a payload goes back when every result of the batch is done with it', () => {
  const outputs = (value: number) => [{ index: 0, shape: [4], data: Buffer.alloc(4, value) }];
  const sent = { computeInputNs: 1, computeInferNs: 2, computeOutputNs: 3 };
  const replyOf = (results: ExecuteResult[], release: () => void): ReceivedReply => {
    const reader: { reply?: ReceivedReply } = {};
    const frames = new FrameReader({
      isContiguous: false,
      onFrame: ({ header, payload }) => {
        reader.reply = decodeResponseFrame(header, payload, { lease: { release }, areInputsSent: true });
      },
    });
    for (const part of encodeResponseFrame(1, { ...sent, results })) frames.push(part);
    return reader.reply!;
  };
  const leaseOf = (reply: ReceivedReply, index: number): Lease =>
    (reply.results[index] as ReceivedOutputs).lease!;
  let count = 0;
  const release = (): void => {
    count++;
  };
  const both = replyOf([outputs(1), outputs(2)], release);
  assert.equal(both.areInputsSent, true);
  leaseOf(both, 0).release();
  leaseOf(both, 0).release();
  assert.equal(count, 0);
  leaseOf(both, 1).release();
  assert.equal(count, 1);
  // The share of an error is nobody's: the memory is left to the collector.
  leaseOf(replyOf([outputs(1), new StatusError('INTERNAL', 'no')], release), 0).release();
  assert.equal(count, 1);
});
