// Answers of one stream that become ready in any order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../lib/prng.ts';
import type { OutgoingMessage } from './grpc-call.ts';
import { OrderedLanes } from './ordered-lanes.ts';

function message(text: string): OutgoingMessage {
  return { parts: [Buffer.from(text)], byteLength: text.length };
}

function createLanes(hasRoom = true): { lanes: OrderedLanes; written: string[] } {
  const written: string[] = [];
  const lanes = new OrderedLanes(({ parts }) => {
    written.push(parts[0]!.toString());
    return hasRoom;
  });
  return { lanes, written };
}

test('the first writes at once, the others when those before them have ended', () => {
  const { lanes, written } = createLanes();
  const [a, b, c] = [lanes.open(), lanes.open(), lanes.open()];
  c.write(message('c1'));
  b.write(message('b1'));
  assert.deepEqual(written, []);
  a.write(message('a1'));
  assert.deepEqual(written, ['a1']);
  c.end();
  assert.equal(lanes.openCount, 3);
  a.end();
  assert.deepEqual(written, ['a1', 'b1']);
  b.write(message('b2'));
  assert.deepEqual(written, ['a1', 'b1', 'b2']);
  b.end();
  assert.deepEqual(written, ['a1', 'b1', 'b2', 'c1']);
  assert.equal(lanes.openCount, 0);
});

test('only who writes hears that the client reads too slowly', () => {
  const { lanes } = createLanes(false);
  const [a, b] = [lanes.open(), lanes.open()];
  assert.equal(b.write(message('b')), true);
  assert.equal(a.write(message('a')), false);
});

test('a lane that ends without a word holds nobody', () => {
  const { lanes, written } = createLanes();
  const [a, b] = [lanes.open(), lanes.open()];
  b.write(message('b'));
  b.end();
  a.end();
  assert.deepEqual(written, ['b']);
  assert.equal(lanes.openCount, 0);
});

test('any order of answers leaves in the order of the requests', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const prng = createPrng(seed);
    const { lanes, written } = createLanes();
    const open = Array.from({ length: 30 }, () => lanes.open());
    const counts = open.map(() => prng.integer(0, 3));
    const steps = counts.flatMap((count, lane) => new Array<number>(count + 1).fill(lane));
    const done = new Array<number>(open.length).fill(0);
    for (const lane of prng.shuffle(steps)) {
      const number = done[lane]!++;
      if (number === counts[lane]) open[lane]!.end();
      else open[lane]!.write(message(`${lane}.${number}`));
    }
    const expected = counts.flatMap((count, lane) => Array.from({ length: count }, (_, i) => `${lane}.${i}`));
    assert.deepEqual(written, expected, `seed ${seed}`);
    assert.equal(lanes.openCount, 0);
  }
});
