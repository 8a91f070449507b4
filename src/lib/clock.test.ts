// The simulated clock that schedulers are tested with, and the little the system clock promises.
// Only the last test waits for real time, a few milliseconds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SimulatedClock, systemClock } from './clock.ts';
import { createPrng } from './prng.ts';

test('timers run in order of time, then of creation, each at its own time', () => {
  const clock = new SimulatedClock();
  const seen: string[] = [];
  const note = (name: string) => () => seen.push(`${name}@${clock.nowMs()}`);
  clock.setTimer(5, note('b'));
  clock.setTimer(1.5, note('a'));
  clock.setTimer(5, note('c'));
  clock.setTimer(11, note('late'));
  clock.advance(10);
  assert.deepEqual(seen, ['a@1.5', 'b@5', 'c@5']);
  assert.equal(clock.nowMs(), 10);
  assert.equal(clock.nextTimerMs(), 11);
});

test('a cancelled timer does not run, and a timer may set another', () => {
  const clock = new SimulatedClock();
  let count = 0;
  const cancel = clock.setTimer(1, () => assert.fail('was cancelled'));
  const again = () => {
    count++;
    if (count < 5) clock.setTimer(2, again);
  };
  clock.setTimer(2, again);
  cancel();
  assert.equal(clock.run(), 5);
  assert.equal(clock.nowMs(), 10);
  assert.equal(clock.nextTimerMs(), undefined);
});

test('many timers with a seed come out sorted', () => {
  const clock = new SimulatedClock();
  const random = createPrng(1);
  const seen: number[] = [];
  for (let i = 0; i < 2000; i++) {
    const cancel = clock.setTimer(random.integer(0, 300), () => seen.push(clock.nowMs()));
    if (random.boolean(0.2)) cancel();
  }
  clock.run();
  assert.ok(seen.length > 1400 && seen.length < 1800);
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  );
});

test('advanceAsync lets awaiting code go on between timers', async () => {
  const clock = new SimulatedClock();
  const sleep = (ms: number) => new Promise<void>((resolve) => clock.setTimer(ms, resolve));
  const times: number[] = [];
  const program = (async () => {
    for (let i = 0; i < 3; i++) {
      await sleep(10);
      times.push(clock.nowMs());
    }
  })();
  await clock.advanceAsync(40);
  await program;
  assert.deepEqual(times, [10, 20, 30]);
});

test('wall time moves with the simulated clock', () => {
  const clock = new SimulatedClock({ wallStartMs: 1000 });
  clock.advance(2.5);
  assert.equal(clock.wallMs(), 1002);
});

test('the system clock is monotonic and its timers can be cancelled', async () => {
  const startMs = systemClock.nowMs();
  const cancel = systemClock.setTimer(0, () => assert.fail('was cancelled'));
  cancel();
  await new Promise<void>((resolve) => systemClock.setTimer(2, resolve));
  assert.ok(systemClock.nowMs() > startMs);
  // a delay that setTimeout would take for "at once"
  systemClock.setTimer(1e12, () => assert.fail('too early'))();
});
