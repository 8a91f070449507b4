// Python models answer as in the real Triton: every case of case-list.ts, played on Nereid and compared with what Triton
// answered (recorded.json), but for what differences.json names. triton.test.ts plays them on the real one.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { pythonSkip } from '../support/python.ts';
import { CASES } from './case-list.ts';
import type { Answer } from './cases.ts';
import { inOrder } from './normal-form.ts';
import { FOLDER, type Played, play, readJson } from './play.ts';

interface Difference {
  readonly id: string;
  readonly reason: string;
  /** What Nereid answers instead. */
  readonly answers: readonly Answer[];
}

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const recorded = readJson<Played>('recorded.json');
const differences = readJson<readonly Difference[]>('differences.json');
const NAMES = 'configs.http.names';

/** Every public name of triton_python_backend_utils and of its classes, as that case has seen it. */
function namesIn(played: Played): Readonly<Record<string, readonly string[]>> {
  const [answer] = played[NAMES] ?? [];
  const outputs = answer?.outputs as Record<string, { seen: Record<string, string[]> }>;
  return outputs.SEEN!.seen;
}

describe('the recording', () => {
  test('has every case once, and no other', () => {
    assert.deepEqual(Object.keys(recorded), [...new Set(CASES.map(({ id }) => id))]);
    assert.equal(CASES.length, Object.keys(recorded).length);
  });

  test('differs on purpose only in cases that exist', () => {
    const unknown = differences.filter(({ id }) => recorded[id] === undefined);
    assert.deepEqual(unknown, []);
  });

  test('knows no name of triton_python_backend_utils that no model uses', () => {
    const sources = readdirSync(join(FOLDER, 'models'), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.py'))
      .map((name) => readFileSync(join(FOLDER, 'models', name), 'utf8'))
      .concat(readFileSync(join(FOLDER, 'steps.py'), 'utf8'));
    const text = sources.join('\n');
    const names = Object.entries(namesIn(recorded)).flatMap(([name, members]) => [name, ...members]);
    assert.deepEqual(
      names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)),
      [],
    );
  });
});

describe('Nereid', { skip: pythonSkip }, () => {
  let played: Played = {};
  before(async () => {
    played = await play({ env: { NEREID_PYTHON: PYTHON } });
  });

  for (const { id } of CASES) {
    if (id === NAMES) continue;
    const difference = differences.find((other) => other.id === id);
    test(`answers ${id} ${difference === undefined ? 'as Triton' : `otherwise: ${difference.reason}`}`, () => {
      assert.deepEqual(inOrder(played[id]), inOrder(difference?.answers ?? recorded[id]));
    });
  }

  test('has every name of triton_python_backend_utils', () => {
    const ours = namesIn(played);
    for (const [name, members] of Object.entries(namesIn(recorded))) {
      const missing = members.filter((member) => !ours[name]?.includes(member));
      assert.deepEqual(missing, [], name);
    }
  });
});
