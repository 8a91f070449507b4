// Turns the check_ functions of a Python driver into tests. The driver runs once and prints "ok NAME" or
// "not ok NAME" with the reason for each (test/e2e/checks.py); here every one of them passes or fails by itself.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { inRoot } from './paths.ts';

/** `script` is a path below test/; `output` gives what it printed, once the tests run. */
export function testChecks(script: string, output: () => string): void {
  const source = readFileSync(inRoot('test', script), 'utf8');
  const names = [...source.matchAll(/^(?:async )?def check_(\w+)/gm)].map((found) => found[1]!);
  assert.ok(names.length > 0, `${script} has no check`);
  for (const name of names) {
    test(name.replaceAll('_', ' '), () => {
      const report = new RegExp(
        `^(?:not )?ok check_${name}$[\\s\\S]*?(?=^(?:not )?ok check_|(?![\\s\\S]))`,
        'm',
      ).exec(output());
      assert.ok(report?.[0].startsWith('ok'), report?.[0] ?? output());
    });
  }
}
