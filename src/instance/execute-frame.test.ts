// Random batches through the EXECUTE frame: what the server sends is what the host reads, laid out as backends
// rely on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ExecuteBatch, StateSlot } from '../backend/sdk.ts';
import { createPrng, type Prng } from '../lib/prng.ts';
import { decodeExecuteFrame, encodeExecuteFrame, type SentInput, type SentRequest } from './execute-frame.ts';
import { FrameReader } from './frame-reader.ts';
import { COALESCE_BYTES_MAX, FRAME_ALIGNMENT, FRAME_EXECUTE } from './protocol.ts';

function randomInput(prng: Prng, index: number, bytesMax: number): SentInput {
  const bytes = Buffer.alloc(prng.integer(0, bytesMax), prng.integer(1, 255));
  const middle = prng.integer(0, bytes.length);
  const shape = Array.from({ length: prng.integer(0, 5) }, () => prng.pick([0, 1, 7, 2 ** 31, 2 ** 40]));
  return {
    index,
    shape,
    data: [bytes.subarray(0, middle), bytes.subarray(middle)],
    byteLength: bytes.length,
  };
}

function randomState(prng: Prng): StateSlot {
  return { slot: prng.integer(0, 0xffff_fffe), isStart: prng.boolean(0.5), isEnd: prng.boolean(0.5) };
}

/** Inputs in any order and, where a model has optional ones, not the same in every request. */
function randomRequest(prng: Prng, inputCount: number, bytesMax: number): SentRequest {
  const indexes = prng
    .shuffle(Array.from({ length: inputCount }, (_, i) => i))
    .filter(() => prng.boolean(0.9));
  return {
    inputs: indexes.map((index) => randomInput(prng, index, bytesMax)),
    requestedOutputs: Array.from({ length: prng.integer(0, 3) }, () => prng.integer(0, 65_535)),
    state: prng.boolean(0.5) ? randomState(prng) : undefined,
  };
}

function decode(parts: readonly Buffer[]): ExecuteBatch {
  const batches: ExecuteBatch[] = [];
  const reader = new FrameReader({
    isContiguous: true,
    onFrame: (frame) => {
      assert.equal(frame.type, FRAME_EXECUTE);
      batches.push(decodeExecuteFrame(frame.header, frame.payload[0] ?? Buffer.alloc(0)));
    },
  });
  for (const part of parts) reader.push(part);
  assert.equal(batches.length, 1);
  return batches[0]!;
}

function checkLayout(batch: ExecuteBatch, inputCount: number): void {
  for (let index = 0; index < inputCount; index++) {
    const places = batch.requests.flatMap(({ inputs }) => inputs.filter((input) => input.index === index));
    places.forEach((place, i) => {
      const before = places[i - 1];
      if (before === undefined) assert.equal(place.offset % FRAME_ALIGNMENT, 0);
      else assert.equal(place.offset, before.offset + before.byteLength);
    });
  }
}

test('random batches come out as they went in, input by input without a gap', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const prng = createPrng(seed);
    const inputCount = prng.integer(0, 4);
    const bytesMax = prng.pick([10, 300, 60_000]);
    const requests = Array.from({ length: prng.integer(0, 6) }, () =>
      randomRequest(prng, inputCount, bytesMax),
    );
    const batchId = prng.uint32();
    const batch = decode(encodeExecuteFrame(batchId, requests));
    assert.equal(batch.id, batchId);
    assert.deepEqual(
      batch.requests.map((request) => ({
        requestedOutputs: request.requestedOutputs,
        state: request.state,
        inputs: request.inputs.map(({ index, shape, offset, byteLength }) => ({
          index,
          shape,
          bytes: batch.payload.toString('hex', offset, offset + byteLength),
        })),
      })),
      requests.map((request) => ({
        requestedOutputs: request.requestedOutputs,
        state: request.state,
        inputs: request.inputs.map(({ index, shape, data }) => ({
          index,
          shape,
          bytes: Buffer.concat(data).toString('hex'),
        })),
      })),
      `seed ${seed}`,
    );
    checkLayout(batch, inputCount);
  }
});

test('small payloads leave in one buffer, large ones are not copied', () => {
  const request = (byteLength: number): SentRequest => ({
    inputs: [{ index: 0, shape: [byteLength], data: [Buffer.alloc(byteLength)], byteLength }],
    requestedOutputs: [],
  });
  assert.equal(encodeExecuteFrame(1, [request(COALESCE_BYTES_MAX)]).length, 1);
  const large = request(COALESCE_BYTES_MAX + 1);
  assert.ok(encodeExecuteFrame(1, [large]).includes(large.inputs[0]!.data[0]!));
});
