// The rate limiter without schedulers: calls, lapses, deaths, pools that change. The seeded run with real batchers is
// test/simulation/rate-limiter.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Admission } from '../../instance/admission.ts';
import { RateLimiter } from './rate-limiter.ts';
import type { InstanceLimits, ResourceLimit } from './resources.ts';

class World {
  readonly told: string[] = [];
  readonly #deferred: (() => void)[] = [];
  readonly #limiter: RateLimiter;

  constructor(limits: ResourceLimit[] = []) {
    this.#limiter = new RateLimiter({ limits, defer: (fn) => this.#deferred.push(fn) });
  }

  add(name: string, needs: Record<string, number>, priority = 1): Admission {
    return this.addAll(name, [limitsFor(needs, priority)])[0]!;
  }

  addAll(name: string, limits: InstanceLimits[]): Admission[] {
    return this.#limiter.register(limits, () => this.told.push(name));
  }

  /** The end of the turn; what is deferred meanwhile belongs to the next. */
  turn(): string[] {
    for (const run of this.#deferred.splice(0)) run();
    return this.told.splice(0);
  }

  get isQuiet(): boolean {
    return this.#deferred.length === 0;
  }
}

function limitsFor(needs: Record<string, number>, priority = 1): InstanceLimits {
  const entries = Object.entries(needs).map(([name, count]) => [name, { name, device: 0, count }] as const);
  return { needs: new Map(entries), priority };
}

function run(admission: Admission): void {
  assert.ok(admission.ask());
  admission.begin();
}

test('a resource goes from one model to the next, which is told once', () => {
  const world = new World();
  const a = world.add('a', { r: 1 });
  const b = world.add('b', { r: 1 });
  const c = world.add('c', {});
  run(a);
  run(c);
  assert.equal(b.ask(), false);
  assert.deepEqual(world.turn(), []);
  a.end();
  assert.deepEqual(world.turn(), ['b']);
  run(b);
  assert.equal(a.ask(), false);
  world.turn();
  b.end();
  assert.deepEqual(world.turn(), ['a']);
});

test('an instance that runs gets no second batch', () => {
  const world = new World([{ name: 'r', count: 9, device: -1 }]);
  const a = world.add('a', { r: 1 });
  run(a);
  assert.equal(a.ask(), false);
  assert.throws(() => a.begin());
  a.end();
  run(a);
});

test('who does not use its turn loses it, is not woken again, and the next is told', () => {
  const world = new World();
  const a = world.add('a', { r: 1 });
  const b = world.add('b', { r: 1 });
  const c = world.add('c', { r: 1 });
  run(a);
  b.ask();
  c.ask();
  a.end();
  assert.deepEqual(world.turn(), ['b']);
  assert.deepEqual(world.turn(), ['c']);
  assert.deepEqual(world.turn(), []);
  assert.ok(world.isQuiet);
  // A turn that was given on asking lapses as well.
  assert.ok(a.ask());
  assert.equal(b.ask(), false);
  assert.deepEqual(world.turn(), ['b']);
});

test('a model whose batch ended asks again before the others are called, so that priorities count', () => {
  const world = new World();
  const often = world.add('often', { r: 1 }, 1);
  const seldom = world.add('seldom', { r: 1 }, 3);
  const counts = new Map([
    [often, 0],
    [seldom, 0],
  ]);
  let running: Admission | undefined;
  const askAll = () => {
    for (const admission of [seldom, often]) {
      if (!admission.ask()) continue;
      admission.begin();
      running = admission;
      counts.set(admission, counts.get(admission)! + 1);
    }
  };
  for (let i = 0; i < 400; i++) {
    running?.end();
    running = undefined;
    // The one that ended asks at once, the other one when it is told.
    askAll();
    if (world.turn().length > 0) askAll();
  }
  const ratio = counts.get(often)! / counts.get(seldom)!;
  assert.ok(Math.abs(ratio - 3) < 0.1, `${ratio}`);
});

test('an end without a batch, a second end and an end after leaving give nothing back', () => {
  const world = new World([{ name: 'r', count: 1, device: -1 }]);
  const a = world.add('a', { r: 1 });
  const b = world.add('b', { r: 1 });
  const c = world.add('c', { r: 1 });
  a.end();
  run(a);
  a.end();
  a.end();
  run(b);
  b.leave();
  b.end();
  b.leave();
  assert.equal(b.ask(), false);
  run(a);
  assert.equal(c.ask(), false);
});

test('pools grow and shrink with the instances; what is in use counts until it is given back', () => {
  const world = new World();
  const [a, b] = world.addAll('small', [limitsFor({ r: 2 }), limitsFor({ r: 2 })]);
  const large = world.add('large', { r: 4 });
  run(a!);
  run(b!);
  large.leave();
  a!.end();
  // Two are left, and b uses them.
  assert.equal(a!.ask(), false);
  b!.end();
  assert.deepEqual(world.turn(), ['small']);
  run(a!);
});

test('a model that could never run leaves nothing behind', () => {
  const world = new World([{ name: 'r', count: 2, device: -1 }]);
  const a = world.add('a', { r: 2 });
  assert.throws(() => world.addAll('b', [limitsFor({ r: 1 }), limitsFor({ r: 3 })]), /is limited to 2/);
  run(a);
  a.end();
  run(a);
});

test('a wait whose request a sibling has taken is doubted, told once, and forgotten', () => {
  const world = new World();
  const [small, large] = world.addAll('a', [limitsFor({ s: 1 }), limitsFor({ r: 2 })]);
  const b = world.add('b', { r: 1 });
  const c = world.add('c', { r: 1 });
  run(b);
  assert.equal(large!.ask(), false);
  run(small!);
  // Two of r are kept for the large one, so c has to wait, though it is wanted no more.
  assert.equal(c.ask(), false);
  assert.deepEqual(world.turn(), ['a']);
  assert.deepEqual(world.turn(), ['c']);
  run(c);
  assert.deepEqual(world.turn(), []);
  assert.ok(world.isQuiet);
});

test('a wait that is confirmed keeps its place', () => {
  const world = new World();
  const [small, large] = world.addAll('a', [limitsFor({ s: 1 }), limitsFor({ r: 2 })]);
  const b = world.add('b', { r: 1 });
  const c = world.add('c', { r: 1 });
  run(b);
  assert.equal(large!.ask(), false);
  run(small!);
  assert.equal(c.ask(), false);
  assert.deepEqual(world.turn(), ['a']);
  assert.equal(large!.ask(), false);
  assert.deepEqual(world.turn(), []);
  b.end();
  assert.deepEqual(world.turn(), ['a']);
  run(large!);
});
