// Replays what Triton 2.51 answered over HTTP and gRPC (cases/, recorded) against two servers of ours. An answer
// may differ only where deviations.json says why, and docs/parity.md tells users the same; a listed deviation
// that no longer differs fails too, so the list stays true.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { type Case, isAlone, readCases } from './cases.ts';
import { GrpcTarget } from './grpc-exchange.ts';
import { describeRequest, type ReplayTargets, replayCase, type StepDifference } from './replay.ts';
import { type CorpusRepositories, copyRepositories, isPythonCase } from './repositories.ts';
import { sharedMemorySkip } from './shared-memory.ts';

interface Deviation {
  readonly id: string;
  readonly reason: string;
}

const CONFORMANCE = inRoot('test', 'conformance');
const DIFFERENCES_SHOWN_MAX = 6;
const CASES_AT_ONCE = 8;

const cases = readCases();
const deviations = new Map(
  (JSON.parse(readFileSync(`${CONFORMANCE}/deviations.json`, 'utf8')) as Deviation[]).map((one) => [
    one.id,
    one,
  ]),
);

describe('conformance with Triton 2.51', { concurrency: false }, () => {
  let repositories: CorpusRepositories;
  let servers: readonly RunningServer[] = [];
  let targets: ReplayTargets;

  before(async () => {
    repositories = copyRepositories({ isPython: pythonSkip === false });
    const [main, explicit] = await startServers(repositories);
    servers = [main, explicit];
    targets = {
      http: { main: main.httpAddress, explicit: explicit.httpAddress },
      grpc: { main: new GrpcTarget(main.grpcAddress), explicit: new GrpcTarget(explicit.grpcAddress) },
      metrics: main.metricsAddress,
      modelsHeld: repositories.modelsHeld,
    };
  });
  after(async () => {
    targets?.grpc.main.close();
    targets?.grpc.explicit.close();
    await Promise.all(servers.map((server) => server.stop()));
    repositories?.remove();
  });

  function testCase(one: Case): void {
    test(one.id, { skip: skipReason(one) }, async () => {
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

  describe('cases that others do not disturb', { concurrency: CASES_AT_ONCE }, () => {
    for (const one of cases) if (!isAlone(one)) testCase(one);
  });

  describe('cases that must be alone on their server', { concurrency: 2 }, () => {
    for (const server of ['main', 'explicit']) {
      describe(server, { concurrency: false }, () => {
        for (const one of cases) if (isAlone(one) && one.server === server) testCase(one);
      });
    }
  });
});

function startServers(repositories: CorpusRepositories): Promise<[RunningServer, RunningServer]> {
  const python = process.env.NEREID_TEST_PYTHON;
  const env: Record<string, string> = python === undefined ? {} : { NEREID_PYTHON: python };
  const main = startServer({
    repository: repositories.path('main'),
    args: [
      '--cache-config=local,size=1048576',
      '--http-header-forward-pattern=x-fwd-.*',
      '--grpc-header-forward-pattern=x-fwd-.*',
    ],
    isGrpc: true,
    env,
  });
  const explicit = startServer({
    repository: repositories.path('explicit'),
    args: [
      '--model-control-mode=explicit',
      '--http-restricted-api=shared-memory,trace:x-oracle-key=sesame',
      '--grpc-restricted-protocol=shared-memory,trace:oracle-key=sesame',
    ],
    isGrpc: true,
    env,
  });
  return Promise.all([main, explicit]);
}

function skipReason(one: Case): string | false {
  if (isPythonCase(one) && pythonSkip !== false) return pythonSkip;
  return one.sharedMemory.length > 0 && sharedMemorySkip;
}

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
