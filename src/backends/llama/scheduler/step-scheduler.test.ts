import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Admission,
  type NewRequest,
  type SchedulerLimits,
  SchedulerRefusal,
  type StepPlan,
  type StepResult,
} from './step-plan.ts';
import { StepScheduler } from './step-scheduler.ts';

const LIMITS: SchedulerLimits = {
  ...{ cellCount: 1_000, sequenceCount: 8, stepTokensMax: 64, prefillChunkMax: 16, apartRowsMin: 1_000 },
  ...{ runningMax: 8, waitingMax: 16, contextLength: 500, isContextShift: false, isPrefixReuse: true },
  ...{ keptCellsMax: 1_000, keptCellsMin: 1_000 },
};

function makeScheduler(limits: Partial<SchedulerLimits> = {}): StepScheduler {
  return new StepScheduler({ ...LIMITS, ...limits });
}

function makeRequest(id: number, prompt: readonly number[], more: Partial<NewRequest> = {}): NewRequest {
  return { id, prompt, priority: 0, adapter: 0, maxTokens: 100, ...more };
}

/** Different tokens, all of them different from those of another `from`. */
function tokens(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + i);
}

/** Answers every row that wants an output with the token given, or with 1. */
function step(scheduler: StepScheduler, finished: readonly number[] = [], token = 1): StepPlan {
  const plan = scheduler.schedule();
  assert.ok(plan !== undefined, 'nothing to do');
  const results = new Map<number, StepResult>();
  for (const { requestId, outputs } of plan.rows) {
    if (outputs === 'none') continue;
    results.set(requestId, { tokens: [token], isFinished: finished.includes(requestId) });
  }
  scheduler.update(plan, results);
  return plan;
}

function shape({ rows }: StepPlan): [id: number, firstPosition: number, count: number, outputs: string][] {
  return rows.map((row) => [row.requestId, row.firstPosition, row.tokens.length, row.outputs]);
}

test('keeps less where prompts never begin alike, and more again when they do', () => {
  const scheduler = makeScheduler({ keptCellsMax: 400, keptCellsMin: 0 });
  let id = 0;
  const begin = (from: number) => {
    scheduler.add(makeRequest(++id, tokens(from, 60)));
    return step(scheduler).admitted[0]!.reusedTokens;
  };
  const ask = (from: number) => {
    const reused = begin(from);
    const cached = scheduler.stats.cellsCached;
    step(scheduler, [id]);
    return { reused, cached };
  };
  for (let i = 0; i < 40; i++) ask(10_000 + i * 100);
  assert.deepEqual(ask(20_000), { reused: 0, cached: 0 });
  // What ended last is there until somebody else begins.
  assert.equal(scheduler.stats.cellsCached, 61);
  assert.equal(ask(20_000).reused, 59);
  for (let i = 0; i < 40; i++) ask(30_000 + i * 100);
  // Its cells have gone long ago, but that there was such a prompt is known.
  assert.equal(ask(30_000 + 5 * 100).reused, 0);
  assert.equal(ask(40_000).cached, 61);
});

test('keeps nothing while others run, where prompts never begin alike', () => {
  const scheduler = makeScheduler({ keptCellsMax: 400, keptCellsMin: 0 });
  for (let id = 1; id <= 41; id++) {
    scheduler.add(makeRequest(id, tokens(id * 100, 60)));
    step(scheduler, [id - 1]);
  }
  assert.equal(scheduler.stats.running, 1);
  assert.equal(scheduler.stats.cellsCached, 0);
});

test('of prompts that share a beginning, keeps that and the end of the last', () => {
  const scheduler = makeScheduler({ keptCellsMax: 400, keptCellsMin: 0 });
  let id = 0;
  let reused = 0;
  const ask = (from: number) => {
    scheduler.add(makeRequest(++id, [...tokens(100, 32), ...tokens(from, 20)]));
    reused = step(scheduler, [id]).admitted[0]!.reusedTokens;
  };
  for (let i = 0; i < 40; i++) ask(10_000 + i * 100);
  assert.equal(scheduler.stats.cellsCached, 32 + 20);
  assert.equal(reused, 32);
  assert.equal(scheduler.stats.sequencesKept, 1);
});

test('keeps no more cells for later requests than it may, the most recent ones', () => {
  const scheduler = makeScheduler({ keptCellsMax: 100 });
  for (const [id, from] of [
    [1, 1000],
    [2, 2000],
    [3, 3000],
  ] as const) {
    scheduler.add(makeRequest(id, tokens(from, 60)));
    step(scheduler, [id]);
  }
  assert.equal(scheduler.stats.cellsCached, 100);
  scheduler.add(makeRequest(4, tokens(3000, 60)));
  assert.equal(step(scheduler, [4]).admitted[0]!.reusedTokens, 59);
  scheduler.add(makeRequest(5, tokens(1000, 60)));
  assert.equal(step(scheduler, [5]).admitted[0]!.reusedTokens, 0);
});

describe('a step', () => {
  test('computes a lone prompt at once, then token by token', () => {
    const scheduler = makeScheduler();
    assert.equal(scheduler.schedule(), undefined);
    scheduler.add(makeRequest(1, tokens(100, 70)));
    assert.deepEqual(shape(step(scheduler)), [[1, 0, 64, 'none']]);
    assert.deepEqual(shape(step(scheduler)), [[1, 64, 6, 'last']]);
    const plan = step(scheduler, [1]);
    assert.deepEqual(shape(plan), [[1, 70, 1, 'last']]);
    assert.deepEqual(plan.rows[0]!.tokens, [1]);
    assert.equal(scheduler.schedule(), undefined);
    // The last sampled token was never decoded.
    assert.equal(scheduler.stats.cellsUsed, 71);
    assert.equal(scheduler.stats.cellsCached, 71);
  });

  test('cuts a prompt into chunks while others decode', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 5)));
    step(scheduler);
    scheduler.add(makeRequest(2, tokens(200, 20)));
    assert.deepEqual(shape(step(scheduler)), [
      [1, 5, 1, 'last'],
      [2, 0, 16, 'none'],
    ]);
    assert.deepEqual(shape(step(scheduler)), [
      [1, 6, 1, 'last'],
      [2, 16, 4, 'last'],
    ]);
  });

  test('has no more rows than it is told while others decode', () => {
    const scheduler = makeScheduler({ prefillChunkMax: 64 });
    scheduler.add(makeRequest(1, tokens(100, 5)));
    step(scheduler);
    scheduler.add(makeRequest(2, tokens(200, 20)));
    scheduler.add(makeRequest(3, tokens(300, 20)));
    assert.deepEqual(shape(scheduler.schedule(undefined, 25)!), [
      [1, 5, 1, 'last'],
      [2, 0, 20, 'last'],
      [3, 0, 4, 'none'],
    ]);
    const alone = makeScheduler();
    alone.add(makeRequest(1, tokens(100, 70)));
    assert.deepEqual(shape(alone.schedule(undefined, 25)!), [[1, 0, 64, 'none']], 'nobody waits for a token');
  });

  test('holds one adapter, and the adapters take turns', () => {
    const scheduler = makeScheduler();
    for (const id of [1, 2, 3]) scheduler.add(makeRequest(id, [5, 6, 7], { adapter: id % 2 }));
    const turns = Array.from({ length: 12 }, () => step(scheduler)).map(
      ({ adapter, rows }) => `${adapter}: ${rows.map(({ requestId }) => requestId)}`,
    );
    const first = new Array<string>(4).fill('1: 1,3');
    assert.deepEqual(turns, [...first, ...new Array<string>(4).fill('0: 2'), ...first]);
  });

  test('must be ended before the next', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, [5, 6]));
    const plan = scheduler.schedule()!;
    assert.throws(() => scheduler.schedule(), /under way/);
    assert.throws(() => scheduler.update({ ...plan }, new Map()), /not the step under way/);
    assert.throws(() => scheduler.update(plan, new Map()), /no new token for request 1/);
  });

  test('that failed costs its requests, and what it had put into the cache', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 5)));
    for (let i = 0; i < 4; i++) step(scheduler);
    scheduler.add(makeRequest(2, [8, 9], { adapter: 3 }));
    const plan = scheduler.schedule()!;
    assert.equal(plan.adapter, 3);
    scheduler.abandon(plan);
    assert.equal(scheduler.stats.running, 1);
    assert.equal(scheduler.stats.cellsUsed, 8);
    assert.deepEqual(shape(step(scheduler)), [[1, 8, 1, 'last']]);
  });
});

describe('who begins', () => {
  test('is decided by priority, then by arrival', () => {
    const scheduler = makeScheduler({ runningMax: 2 });
    for (const [id, priority] of [
      [1, 5],
      [2, 0],
      [3, 0],
    ] as const) {
      scheduler.add(makeRequest(id, tokens(id * 100, 4), { priority }));
    }
    assert.deepEqual(
      step(scheduler).admitted.map(({ id }) => id),
      [2, 3],
    );
  });

  test('nobody overtakes a request that does not fit yet', () => {
    const scheduler = makeScheduler({ cellCount: 100 });
    scheduler.add(makeRequest(1, tokens(100, 40)));
    step(scheduler);
    scheduler.add(makeRequest(2, tokens(200, 60)));
    scheduler.add(makeRequest(3, tokens(300, 2)));
    assert.deepEqual(step(scheduler, [1]).admitted, []);
    assert.deepEqual(
      step(scheduler).admitted.map(({ id }) => id),
      [2, 3],
    );
  });

  test('a full queue and a prompt that can never fit are refused', () => {
    const scheduler = makeScheduler({ cellCount: 10, waitingMax: 1 });
    const reasonOf = (request: NewRequest) => {
      try {
        scheduler.add(request);
        return 'taken';
      } catch (thrown) {
        assert.ok(thrown instanceof SchedulerRefusal, String(thrown));
        return thrown.reason;
      }
    };
    assert.equal(reasonOf(makeRequest(1, tokens(0, 10))), 'prompt-too-long');
    assert.equal(reasonOf(makeRequest(2, tokens(0, 9))), 'taken');
    assert.equal(reasonOf(makeRequest(3, tokens(0, 2))), 'queue-full');
  });
});

describe('a prefix', () => {
  test('of a finished request is taken over with its sequence, without an op', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 20)));
    step(scheduler);
    const { rows } = step(scheduler, [1]);
    scheduler.add(makeRequest(2, [...tokens(100, 20), 1, 1, 55]));
    const plan = step(scheduler);
    assert.deepEqual(withoutSequence(plan.admitted), [{ id: 2, reusedTokens: 21, isResumed: false }]);
    assert.deepEqual(plan.memory, []);
    assert.equal(plan.rows[0]!.sequence, rows[0]!.sequence);
    assert.deepEqual(shape(plan), [[2, 21, 2, 'last']]);
    assert.equal(scheduler.stats.promptTokensReused, 21);
  });

  test('of a running request is shared, and the last token of a known prompt is computed all the same', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 20)));
    step(scheduler);
    scheduler.add(makeRequest(2, tokens(100, 20)));
    const plan = step(scheduler);
    const [first, second] = plan.rows;
    assert.deepEqual(plan.memory, [
      { kind: 'copy', from: first!.sequence, to: second!.sequence, begin: 0, end: 19 },
    ]);
    assert.deepEqual(shape(plan), [
      [1, 20, 1, 'last'],
      [2, 19, 1, 'last'],
    ]);
    // The doubles of what both say are given up at the end at the latest; then sequence 2 holds nothing of its own.
    assert.equal(scheduler.stats.cellsUsed, 22);
    step(scheduler, [2]);
    assert.equal(scheduler.stats.cellsUsed, 22);
    assert.deepEqual(step(scheduler).memory, [
      { kind: 'remove', sequence: second!.sequence, begin: 19, end: 21 },
      { kind: 'copy', from: first!.sequence, to: second!.sequence, begin: 19, end: 21 },
      { kind: 'remove', sequence: second!.sequence, begin: 0, end: -1 },
    ]);
  });

  test('that two computed in one step is held once', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 10)));
    scheduler.add(makeRequest(2, [...tokens(100, 8), 3, 4]));
    const { rows } = step(scheduler);
    const [first, second] = rows.map(({ sequence }) => sequence);
    assert.equal(scheduler.stats.cellsUsed, 12);
    assert.deepEqual(step(scheduler).memory, [
      { kind: 'remove', sequence: second, begin: 0, end: 8 },
      { kind: 'copy', from: first, to: second, begin: 0, end: 8 },
    ]);
  });

  test('that two generate alike is held once after a while', () => {
    const scheduler = makeScheduler();
    for (const id of [1, 2]) scheduler.add(makeRequest(id, tokens(100, 10)));
    for (let i = 0; i < 70; i++) step(scheduler);
    const { cellsUsed } = scheduler.stats;
    assert.ok(cellsUsed >= 79 && cellsUsed < 79 + 64, String(cellsUsed));
  });

  test('is not shared between adapters, nor where reuse is off', () => {
    const scheduler = makeScheduler();
    scheduler.add(makeRequest(1, tokens(100, 20)));
    step(scheduler, [1]);
    scheduler.add(makeRequest(2, tokens(100, 20), { adapter: 1 }));
    assert.equal(step(scheduler).admitted[0]!.reusedTokens, 0);
    const without = makeScheduler({ isPrefixReuse: false });
    without.add(makeRequest(1, tokens(100, 20)));
    step(without, [1]);
    assert.equal(without.stats.cellsUsed, 0);
    without.add(makeRequest(2, tokens(100, 20)));
    assert.equal(step(without).admitted[0]!.reusedTokens, 0);
  });

  test('that another is just computing is waited for, while others pass', () => {
    const scheduler = makeScheduler({ stepTokensMax: 20 });
    scheduler.add(makeRequest(1, tokens(100, 50)));
    scheduler.add(makeRequest(2, [...tokens(100, 40), 7]));
    scheduler.add(makeRequest(3, tokens(300, 2)));
    const first = step(scheduler);
    assert.deepEqual(
      first.admitted.map(({ id }) => id),
      [1, 3],
    );
    assert.equal(scheduler.stats.held, 1);
    step(scheduler);
    const waited: StepPlan[] = [];
    while (scheduler.stats.held > 0) waited.push(step(scheduler));
    assert.deepEqual(withoutSequence(waited.at(-1)!.admitted), [
      { id: 2, reusedTokens: 40, isResumed: false },
    ]);
    assert.equal(scheduler.stats.promptTokensComputed + scheduler.stats.waiting, 50 + 1 + 2);
  });

  test('is not waited for when its leader goes', () => {
    const scheduler = makeScheduler({ stepTokensMax: 20 });
    scheduler.add(makeRequest(1, tokens(100, 50)));
    scheduler.add(makeRequest(2, tokens(100, 45)));
    step(scheduler);
    scheduler.cancel(1);
    // What the leader had computed is there.
    assert.deepEqual(withoutSequence(step(scheduler).admitted), [
      { id: 2, reusedTokens: 20, isResumed: false },
    ]);
  });

  test('that was kept is evicted from its end, the least recently used first', () => {
    const scheduler = makeScheduler({ cellCount: 100 });
    for (const id of [1, 2]) {
      scheduler.add(makeRequest(id, tokens(id * 100, 40)));
      step(scheduler, [id]);
    }
    scheduler.add(makeRequest(3, tokens(300, 40)));
    const { memory } = step(scheduler, [3]);
    assert.deepEqual(memory, [{ kind: 'remove', sequence: 0, begin: 20, end: -1 }]);
    assert.equal(scheduler.stats.cellsUsed, 100);
    assert.equal(scheduler.stats.cellsEvicted, 20);
    scheduler.add(makeRequest(4, tokens(100, 40)));
    assert.equal(step(scheduler, [4]).admitted[0]!.reusedTokens, 20);
  });

  test('gives up its sequence when ids run short', () => {
    const scheduler = makeScheduler({ sequenceCount: 2 });
    for (const id of [1, 2, 3]) {
      scheduler.add(makeRequest(id, tokens(id * 100, 40)));
      step(scheduler, [id]);
    }
    assert.equal(scheduler.stats.sequencesUsed, 2);
    assert.equal(scheduler.stats.cellsUsed, 80);
    scheduler.clearCache();
    assert.equal(scheduler.takeOps().filter(({ kind }) => kind === 'remove').length, 2);
    assert.equal(scheduler.stats.cellsUsed, 0);
  });
});

describe('when the cells run out', () => {
  test('the most junior is preempted, and goes on where it was', () => {
    const scheduler = makeScheduler({ cellCount: 60 });
    scheduler.add(makeRequest(1, tokens(100, 10)));
    scheduler.add(makeRequest(2, tokens(200, 10)));
    let plan = step(scheduler);
    while (plan.preempted.length === 0) plan = step(scheduler);
    assert.deepEqual(plan.preempted, [2]);
    assert.equal(scheduler.stats.preemptions, 1);
    assert.deepEqual(step(scheduler, [1]).admitted, []);
    const resumed = step(scheduler);
    assert.equal(resumed.admitted[0]!.id, 2);
    assert.ok(resumed.admitted[0]!.isResumed);
    const [row] = resumed.rows;
    assert.equal(row!.firstPosition + row!.tokens.length, 31);
    assert.equal(row!.outputs, 'last');
  });

  test('a request that is alone is stuck', () => {
    const scheduler = makeScheduler({ cellCount: 12 });
    scheduler.add(makeRequest(1, tokens(100, 10)));
    const plans = [step(scheduler), step(scheduler), step(scheduler)];
    assert.deepEqual(
      plans.map(({ stuck }) => stuck),
      [[], [], []],
    );
    const plan = step(scheduler);
    assert.deepEqual([plan.stuck, plan.rows], [[1], []]);
    assert.equal(scheduler.schedule(), undefined);
  });
});

describe('proposals', () => {
  function afterPrompt(limits: Partial<SchedulerLimits> = {}, maxTokens = 100) {
    const scheduler = makeScheduler(limits);
    scheduler.add(makeRequest(1, tokens(100, 10), { maxTokens }));
    step(scheduler);
    return scheduler;
  }

  test('follow the decode, and the cells of rejected ones are removed before the next', () => {
    const scheduler = afterPrompt();
    const plan = scheduler.schedule(new Map([[1, [2, 3, 4]]]))!;
    assert.deepEqual(shape(plan), [[1, 10, 4, 'all']]);
    assert.deepEqual(plan.rows[0]!.tokens, [1, 2, 3, 4]);
    assert.equal(scheduler.stats.cellsUsed, 14);
    scheduler.update(plan, new Map([[1, { tokens: [2, 9], isFinished: false }]]));
    assert.equal(scheduler.stats.cellsUsed, 12);
    const next = step(scheduler);
    assert.deepEqual(next.memory, [{ kind: 'remove', sequence: 0, begin: 12, end: -1 }]);
    assert.deepEqual(next.rows[0]!.tokens, [9]);
    assert.equal(next.rows[0]!.firstPosition, 12);
    assert.deepEqual([scheduler.stats.tokensProposed, scheduler.stats.tokensAccepted], [3, 1]);
  });

  test('never exceed what the request may still say', () => {
    const rowsOf = (scheduler: StepScheduler) => shape(scheduler.schedule(new Map([[1, [2, 3, 4]]]))!)[0]![2];
    assert.equal(rowsOf(afterPrompt({}, 3)), 2);
    assert.equal(rowsOf(afterPrompt({}, 2)), 1);
    assert.equal(rowsOf(afterPrompt({ contextLength: 13 })), 2);
    assert.equal(rowsOf(afterPrompt({ cellCount: 12 })), 2);
  });

  test('cannot be accepted when they were not made', () => {
    const scheduler = afterPrompt();
    const plan = scheduler.schedule(new Map([[1, [2, 3]]]))!;
    const results = new Map([[1, { tokens: [5, 6], isFinished: false }]]);
    assert.throws(() => scheduler.update(plan, results), /accepts what was not proposed/);
  });
});

describe('a cancelled request', () => {
  test('leaves the queue at once and a step under way at its end', () => {
    const scheduler = makeScheduler({ runningMax: 1 });
    scheduler.add(makeRequest(1, tokens(100, 10)));
    scheduler.add(makeRequest(2, tokens(200, 10)));
    const plan = scheduler.schedule()!;
    scheduler.cancel(1);
    scheduler.cancel(2);
    scheduler.cancel(99);
    assert.equal(scheduler.stats.waiting, 0);
    scheduler.update(plan, new Map());
    assert.equal(scheduler.stats.running, 0);
    assert.equal(scheduler.schedule(), undefined);
    assert.equal(scheduler.stats.cellsCached, 10);
  });
});

function withoutSequence(admitted: readonly Admission[]): Omit<Admission, 'sequence'>[] {
  return admitted.map(({ sequence: _, ...rest }) => rest);
}
