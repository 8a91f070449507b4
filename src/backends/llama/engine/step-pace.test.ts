import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StepPace } from './step-pace.ts';

test('a device that is not known yet, or slow, gets small steps', () => {
  const pace = new StepPace();
  assert.equal(pace.rowsMax, 512);
  for (let i = 0; i < 10; i++) pace.noteStep(512, 200);
  assert.equal(pace.rowsMax, 512);
});

test('one that computes 40 rows in a millisecond has 2000 in its time', () => {
  const pace = new StepPace();
  pace.noteStep(1000, 25);
  assert.equal(pace.rowsMax, 2000);
});

test('it follows what the steps take', () => {
  const pace = new StepPace();
  pace.noteStep(1000, 25);
  for (let i = 0; i < 30; i++) pace.noteStep(1000, 50);
  assert.ok(pace.rowsMax < 1010, `${pace.rowsMax}`);
});

test('decodes say nothing about a row of a prompt', () => {
  const pace = new StepPace();
  pace.noteStep(64, 12);
  assert.equal(pace.rowsMax, 512);
});
