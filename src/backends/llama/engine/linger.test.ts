import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Linger } from './linger.ts';

const BUSY = { running: 3, waiting: 0 };

test('a tenth of a long step for who has just been answered', () => {
  const linger = new Linger();
  assert.equal(linger.windowMs(60, BUSY), 0);
  linger.noteEnd();
  assert.equal(linger.windowMs(60, BUSY), 6);
  assert.equal(linger.windowMs(500, BUSY), 8);
  assert.equal(linger.windowMs(20, BUSY), 3, 'less would be in vain');
  assert.equal(linger.windowMs(10, BUSY), 0, 'the next step comes soon enough');
});

test('nobody waits where there is enough to do, or nothing', () => {
  const linger = new Linger();
  linger.noteEnd();
  assert.equal(linger.windowMs(60, { running: 3, waiting: 1 }), 0);
  assert.equal(linger.windowMs(60, { running: 0, waiting: 0 }), 0);
});

test('each successor is expected once, and no others are', () => {
  const linger = new Linger();
  linger.noteArrival();
  linger.noteEnd();
  linger.noteEnd();
  assert.equal(linger.expected, 2);
  linger.noteArrival();
  assert.equal(linger.expected, 1);
  assert.equal(linger.windowMs(60, BUSY), 6);
  linger.noteArrival();
  assert.equal(linger.windowMs(60, BUSY), 0);
  linger.noteEnd();
  linger.reset();
  assert.equal(linger.windowMs(60, BUSY), 0);
});
