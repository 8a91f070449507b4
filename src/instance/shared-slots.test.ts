// Unit tests of payloads in shared memory, on real memory files: two mappings of one file stand for server and host.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SOCKET_PAYLOAD_BYTES_MAX } from '../domain/limits.ts';
import { CHUNK_BYTES, payloadPool } from '../lib/chunk-pool.ts';
import { encodeExecuteFrame } from './execute-frame.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { createMemoryFile, mapMemoryFile } from './memory-file.ts';
import { SharedSlots, SLOT_BYTES, SLOT_BYTES_FIRST, SLOT_COUNT, SlotTable } from './shared-slots.ts';

const probe = createMemoryFile(4096);
probe?.close();
const skip = probe === undefined ? 'this system has no memory files' : false;

const requestOf = (data: Buffer[]) => {
  const byteLength = data.reduce((sum, piece) => sum + piece.length, 0);
  return {
    inputs: [{ index: 0, shape: [byteLength], data, byteLength }],
    requestedOutputs: [],
  };
};

/** What a request has given back. */
function fillPool(byteLength: number): void {
  const lent = payloadPool.lend();
  lent.write(Buffer.alloc(byteLength), 0, byteLength);
  lent.release();
}

function read(parts: readonly Buffer[], slots: SharedSlots | undefined): Frame {
  const frames: Frame[] = [];
  const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => frames.push(frame) });
  reader.slots = slots;
  for (const part of parts) reader.push(part);
  assert.equal(frames.length, 1);
  return frames[0]!;
}

describe('a memory file', { skip }, () => {
  test('is the same memory in every mapping', () => {
    const file = createMemoryFile(8192)!;
    const other = mapMemoryFile(file.fd, 8192)!;
    file.bytes.write('here', 5000);
    assert.equal(other.bytes.toString('latin1', 5000, 5004), 'here');
    other.bytes.write('there', 100);
    assert.equal(file.bytes.toString('latin1', 100, 105), 'there');
    assert.equal(file.bytes.length, 8192);
    file.close();
  });

  test('cannot be mapped from a descriptor that is none', () => {
    assert.equal(mapMemoryFile(9999, 4096), undefined);
  });
});

describe('shared slots', { skip }, () => {
  test('carry a large payload beside its frame, in one aligned piece', () => {
    const slots = SharedSlots.create()!;
    const host = SharedSlots.attach(slots.fd, SLOT_BYTES);
    const first = Buffer.alloc(SOCKET_PAYLOAD_BYTES_MAX, 1);
    const second = Buffer.alloc(7, 2);
    const parts = encodeExecuteFrame(5, [requestOf([first, second])], slots.slot(2));
    assert.equal(parts.length, 1);
    assert.ok(parts[0]!.length < 256);
    const frame = read(parts, host);
    assert.equal(frame.slot, 2);
    assert.equal(frame.payloadBytes, first.length + 7);
    assert.ok(frame.payload[0]!.equals(Buffer.concat([first, second])));
    // A copy: the slot may be written again while the payload is in use.
    slots.slot(2).write({ pieces: [{ data: Buffer.alloc(100, 9), offset: 0 }], payloadBytes: 100 });
    assert.equal(frame.payload[0]![0], 1);
    slots.close();
  });

  test('leave small and too large payloads in the frame, which still names the slot', () => {
    const slots = SharedSlots.create()!;
    for (const byteLength of [64, SOCKET_PAYLOAD_BYTES_MAX, SLOT_BYTES + 1]) {
      const data = Buffer.alloc(byteLength, 3);
      const frame = read(encodeExecuteFrame(1, [requestOf([data])], slots.slot(1)), undefined);
      assert.equal(frame.slot, 1);
      assert.ok(frame.payload[0]!.equals(data));
    }
    slots.close();
  });

  test('grow when a payload is larger than what is there, which goes in the frame', async () => {
    const slots = SharedSlots.create()!;
    const data = Buffer.alloc(SLOT_BYTES_FIRST + 1, 4);
    const payload = { pieces: [{ data, offset: 0 }], payloadBytes: data.length };
    assert.equal(slots.slot(2).write(payload), false);
    await slots.grow();
    assert.equal(slots.slot(2).write(payload), true);
    assert.ok(slots.read(2, data.length).equals(data));
    slots.close();
  });

  test('may be closed while they grow', async () => {
    const slots = SharedSlots.create()!;
    const growth = slots.grow();
    slots.close();
    await growth;
  });

  test('do not overlap', async () => {
    const slots = SharedSlots.create()!;
    await slots.grow();
    for (let number = 1; number <= SLOT_COUNT; number++) {
      const data = Buffer.alloc(SLOT_BYTES, number);
      assert.ok(slots.slot(number).write({ pieces: [{ data, offset: 0 }], payloadBytes: SLOT_BYTES }));
    }
    for (let number = 1; number <= SLOT_COUNT; number++) {
      assert.ok(slots.read(number, SLOT_BYTES).equals(Buffer.alloc(SLOT_BYTES, number)));
    }
    slots.close();
  });

  test('refuse what a broken host says', async () => {
    const slots = SharedSlots.create()!;
    await slots.grow();
    for (const [number, bytes] of [
      [0, 1],
      [SLOT_COUNT + 1, 1],
      [1, SLOT_BYTES + 1],
    ] as const) {
      assert.throws(() => slots.read(number, bytes), /no slot/);
    }
    const parts = encodeExecuteFrame(1, [requestOf([Buffer.alloc(SLOT_BYTES)])], slots.slot(1));
    assert.throws(() => read(parts, undefined), /shared memory that there is not/);
    parts[0]!.writeUInt8(7, 5);
    assert.throws(() => read(parts, slots), /unknown place 7/);
    slots.close();
  });

  test('are read by the server into lent memory where there is some, a copy as well', () => {
    const slots = SharedSlots.create()!;
    fillPool(2 * 300_000 + CHUNK_BYTES);
    const data = Buffer.alloc(300_000, 5);
    const parts = encodeExecuteFrame(5, [requestOf([data])], slots.slot(1));
    const frames: Frame[] = [];
    const reader = new FrameReader({ isContiguous: false, onFrame: (frame) => frames.push(frame) });
    reader.slots = slots;
    for (const part of [...parts, ...parts]) reader.push(part);
    slots.slot(1).write({ pieces: [{ data: Buffer.alloc(300_000, 9), offset: 0 }], payloadBytes: 300_000 });
    for (const part of encodeExecuteFrame(5, [requestOf([data])], slots.slot(1))) reader.push(part);
    for (const { payload } of frames) assert.ok(Buffer.concat(payload).equals(data));
    assert.deepEqual(
      frames.map(({ lease }) => lease !== undefined),
      [true, true, false],
    );
    const memory = frames.flatMap(({ payload }) => payload.map(({ buffer }) => buffer));
    assert.equal(new Set(memory).size, memory.length);
    slots.close();
  });

  test('lend nothing to a host, nor for a payload that fits one chunk', () => {
    const slots = SharedSlots.create()!;
    fillPool(300_000);
    const large = encodeExecuteFrame(5, [requestOf([Buffer.alloc(300_000, 5)])], slots.slot(1));
    assert.equal(read(large, slots).lease, undefined);
    const frames: Frame[] = [];
    const reader = new FrameReader({ isContiguous: false, onFrame: (frame) => frames.push(frame) });
    reader.slots = slots;
    const small = encodeExecuteFrame(5, [requestOf([Buffer.alloc(CHUNK_BYTES, 6)])], slots.slot(1));
    for (const part of small) reader.push(part);
    assert.equal(frames[0]!.lease, undefined);
    assert.ok(frames[0]!.payload[0]!.equals(Buffer.alloc(CHUNK_BYTES, 6)));
    slots.close();
  });

  test('are given to one batch at a time', () => {
    const slots = SharedSlots.create()!;
    const table = new SlotTable(slots);
    const numbers = [table.take(10)!.number, table.take(11)!.number];
    assert.deepEqual(numbers, [1, 2]);
    assert.equal(table.take(12), undefined);
    table.free(12);
    table.free(11);
    table.free(11);
    assert.equal(table.take(13)!.number, 2);
    assert.equal(table.take(14), undefined);
    slots.close();
  });
});
