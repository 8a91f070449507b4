import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Semaphore } from './semaphore.ts';

test('no more tasks run than there are places, and the others follow in order', async () => {
  const semaphore = new Semaphore(2);
  const started: number[] = [];
  const finish: (() => void)[] = [];
  const tasks = Array.from({ length: 4 }, (_, i) =>
    semaphore.run(async () => {
      started.push(i);
      await new Promise<void>((resolve) => finish.push(resolve));
      return i;
    }),
  );
  await turn();
  assert.deepEqual(started, [0, 1]);
  finish[1]!();
  await turn();
  assert.deepEqual(started, [0, 1, 2]);
  finish[0]!();
  await turn();
  finish[2]!();
  finish[3]!();
  assert.deepEqual(await Promise.all(tasks), [0, 1, 2, 3]);
});

test('a task that throws gives its place back', async () => {
  const semaphore = new Semaphore(1);
  await assert.rejects(
    semaphore.run(async () => {
      throw new Error('no');
    }),
    /no/,
  );
  assert.equal(await semaphore.run(async () => 'yes'), 'yes');
});

test('a newcomer does not take the place that is handed to one who waits', async () => {
  const semaphore = new Semaphore(1);
  let running = 0;
  let most = 0;
  const task = async () => {
    most = Math.max(most, ++running);
    await turn();
    running--;
  };
  const tasks = [semaphore.run(task), semaphore.run(task)];
  void tasks[0]!.then(() => tasks.push(semaphore.run(task)));
  await Promise.all(tasks);
  await Promise.all(tasks);
  assert.equal(most, 1);
});

test('a count below one still lets one through', async () => {
  assert.equal(await new Semaphore(0).run(async () => 1), 1);
});
