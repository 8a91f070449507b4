// Replays what Triton 2.51 answered over HTTP (cases/, recorded) against two servers of ours. An answer may
// differ only where deviations.json says why, and docs/parity.md tells users the same; a listed deviation
// that no longer differs fails too, so the list stays true.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { type Case, modelsHeld, readCases } from './cases.ts';
import { describeRequest, type ReplayTargets, replayCase, type StepDifference } from './replay.ts';

interface Deviation {
  readonly id: string;
  readonly reason: string;
}

const CONFORMANCE = inRoot('test', 'conformance');
const DIFFERENCES_SHOWN_MAX = 6;

const cases = readCases();
const deviations = new Map(
  (JSON.parse(readFileSync(`${CONFORMANCE}/deviations.json`, 'utf8')) as Deviation[]).map((one) => [
    one.id,
    one,
  ]),
);

describe('conformance with Triton 2.51 over HTTP', { concurrency: false }, () => {
  let main: RunningServer;
  let explicit: RunningServer;
  let targets: ReplayTargets;

  before(async () => {
    main = await startServer({
      repository: `${CONFORMANCE}/models`,
      args: ['--http-header-forward-pattern=x-fwd-.*'],
    });
    explicit = await startServer({
      repository: `${CONFORMANCE}/models_explicit`,
      args: [
        '--model-control-mode=explicit',
        '--http-restricted-api=shared-memory,trace:x-oracle-key=sesame',
      ],
    });
    targets = {
      http: { main: main.httpAddress, explicit: explicit.httpAddress },
      metrics: main.metricsAddress,
      modelsHeld: {
        main: new Set(modelsHeld('models')),
        explicit: new Set(modelsHeld('models_explicit')),
      },
    };
  });
  after(() => Promise.all([main?.stop(), explicit?.stop()]));

  for (const one of cases) {
    test(one.id, async () => {
      const found = await replayCase(one, targets);
      const deviation = deviations.get(one.id);
      if (deviation === undefined) assert.ok(found.length === 0, explain(one, found));
      else
        assert.ok(
          found.length > 0,
          `listed as a deviation (${deviation.reason}), but answers as Triton does`,
        );
    });
  }
});

describe('the list of deviations', () => {
  test('names only cases that exist, each with a reason', () => {
    const ids = new Set(cases.map((one) => one.id));
    for (const { id, reason } of deviations.values()) {
      assert.ok(ids.has(id), `${id} is no case`);
      assert.ok(reason.length > 10, `${id} has no reason`);
    }
  });

  test('is told to users in docs/parity.md', () => {
    const path = inRoot('docs', 'parity.md');
    const parity = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const untold = [...deviations.keys()].filter((id) => !parity.includes(`\`${id}\``));
    assert.deepEqual(untold, [], 'each deviation has its case id, in backticks, in a row of docs/parity.md');
  });
});

function explain(one: Case, found: readonly StepDifference[]): string {
  const lines = found.slice(0, DIFFERENCES_SHOWN_MAX).map(({ step, path, expected, received }) => {
    const request = one.steps[step]?.request ?? {};
    return `step ${step}: ${describeRequest(request)}\n  ${path}\n    expected ${expected}\n    received ${received}`;
  });
  const more = found.length - DIFFERENCES_SHOWN_MAX;
  return [`${one.id} differs from Triton`, ...lines, ...(more > 0 ? [`... ${more} more`] : [])].join('\n');
}
