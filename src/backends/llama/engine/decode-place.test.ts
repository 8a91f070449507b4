import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodePlaces, type DecodeStep } from './decode-place.ts';

const step = (rowCount: number, rest: Partial<DecodeStep> = {}): DecodeStep => ({
  rowCount,
  isRepeated: false,
  isAlone: false,
  isShared: false,
  ...rest,
});

test('a CPU computes on another thread, whatever the step is', () => {
  const places = new DecodePlaces(false);
  places.noteStep(step(1, { isRepeated: true, isAlone: true }), 1);
  assert.equal(places.choose(step(1, { isRepeated: true, isAlone: true })), 'aside');
});

test('what a device has recorded is given to it right here, and waited for elsewhere when it takes long', () => {
  const places = new DecodePlaces(true);
  assert.equal(places.choose(step(16, { isRepeated: true })), 'here');
  places.noteStep(step(16, { isRepeated: true }), 4);
  assert.equal(places.choose(step(16, { isRepeated: true })), 'here-awaited');
  places.noteStep(step(40), 1);
  assert.equal(
    places.choose(step(16, { isRepeated: true })),
    'here-awaited',
    'another kind of step says nothing of it',
  );
  places.noteStep(step(16, { isRepeated: true }), 2);
  assert.equal(places.choose(step(16, { isRepeated: true })), 'here');
});

test('a step of another shape is drawn elsewhere, until a text is alone and such steps are known to be short', () => {
  const places = new DecodePlaces(true);
  assert.equal(places.choose(step(33, { isAlone: true })), 'aside', 'nothing is known yet');
  places.noteStep(step(33, { isAlone: true }), 6);
  assert.equal(places.choose(step(33, { isAlone: true })), 'here');
  assert.equal(places.choose(step(33)), 'aside', 'others may come and go');
  assert.equal(places.choose(step(34, { isAlone: true })), 'aside', 'a longer one is not known');
});

test('a long one takes the leave back, for itself and for longer ones', () => {
  const places = new DecodePlaces(true);
  places.noteStep(step(512), 10);
  places.noteStep(step(64), 40);
  assert.equal(places.choose(step(64, { isAlone: true })), 'aside');
  assert.equal(places.choose(step(63, { isAlone: true })), 'here');
});

test('beside other contexts every step is given to another thread, even that of a text which is alone in its own', () => {
  const places = new DecodePlaces(true);
  places.noteStep(step(33, { isAlone: true }), 6);
  assert.equal(places.choose(step(33, { isAlone: true, isShared: true })), 'aside-awaited');
  assert.equal(places.choose(step(1, { isRepeated: true, isShared: true })), 'aside-awaited');
  assert.equal(new DecodePlaces(false).choose(step(1, { isShared: true })), 'aside');
});
