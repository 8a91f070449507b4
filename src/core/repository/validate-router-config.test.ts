// Configs of routers and labels that are refused, each with the text that tells what to change.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { completeBackend } from './complete-backend.ts';
import { normalizeConfig } from './normalize-config.ts';
import { validateModelConfig } from './validate-config.ts';

function validate(text: string): void {
  const given = parseModelConfig(text);
  validateModelConfig(normalizeConfig(completeBackend(given, { modelName: 'r', versionEntries: [] })));
}

function router(inner: string, outer = ''): string {
  return `platform: "router" router { ${inner} } ${outer}`;
}

const TARGETS = 'target [ { name: "a" model: "m" version: "1" weight: 9 }, { model: "n" weight: 1 } ]';

test('a full config is accepted', () => {
  validate(
    router(`${TARGETS} sticky { header: "x-user" } force_header: "x-nereid-target"
      shadow { model: "next" version: "canary" percent: 10 }
      canary { target: "n" stable: "a" max_error_rate: 0.05 max_p99_ms: 200 }`),
  );
  validate('backend: "identity" version_labels [ { key: "stable" value: 3 }, { key: "v1.2-b_x" value: 1 } ]');
});

const REFUSED: readonly [text: string, message: RegExp][] = [
  ['platform: "router"', /'router' must be set for 'r' whose platform is 'router'/],
  ['backend: "identity" router { target { model: "m" weight: 1 } }', /platform is not 'router'/],
  [router(''), /at least one 'target' must be given for router 'r'/],
  [router('target { weight: 1 }'), /target 0 must have a 'model'/],
  [router('target { model: "m" }'), /at least one target must have a 'weight' above 0/],
  [router('target [ { model: "m" weight: 1 }, { model: "m" weight: 1 } ]'), /two targets are named 'm'/],
  [router('target { model: "m" version: "-1" weight: 1 }'), /the version '-1' of target 'm:-1' is neither/],
  [router(`${TARGETS} sticky { }`), /'sticky' must have 'header', 'parameter' or 'correlation_id: true'/],
  [router(`${TARGETS} sticky { header: "a b" }`), /'a b' is no header name/],
  [router(`${TARGETS} force_header: "a:"`), /'a:' is no header name/],
  [router(`${TARGETS} shadow { percent: 10 }`), /shadow 0 must have a 'model'/],
  [router(`${TARGETS} shadow { model: "s" percent: 101 }`), /'percent' of shadow 's' must be from 0 to 100/],
  [router(`${TARGETS} canary { target: "x" stable: "a" max_p99_ms: 1 }`), /names 'x', which is no target/],
  [router(`${TARGETS} canary { target: "n" stable: "x" max_p99_ms: 1 }`), /names 'x' as stable, which is no/],
  [router(`${TARGETS} canary { target: "n" stable: "n" max_p99_ms: 1 }`), /'n', which has a rule itself/],
  [router(`${TARGETS} canary { target: "n" stable: "a" }`), /must have 'max_error_rate' or 'max_p99_ms'/],
  [router(`${TARGETS} canary { target: "n" stable: "a" max_error_rate: 5 }`), /'max_error_rate' from 0 to 1/],
  [router(TARGETS, 'backend: "python"'), /unexpected|must have no 'backend'/],
  [router(TARGETS, 'dynamic_batching { }'), /must have no scheduler; its targets have/],
  [router(TARGETS, 'instance_group { count: 2 }'), /must have no 'instance_group'/],
  [router(TARGETS, 'response_cache { enable: true }'), /must have no 'response_cache'/],
  [
    'backend: "identity" version_labels { key: "3" value: 3 }',
    /version label '3' of 'r' must begin with a letter/,
  ],
  ['backend: "identity" version_labels { key: "a/b" value: 3 }', /version label 'a\/b'/],
  ['backend: "identity" version_labels { key: "a" value: -1 }', /must be a version, not -1/],
];

for (const [text, message] of REFUSED) {
  test(`${text} is refused`, () => {
    assert.throws(() => validate(text), { code: 'INVALID_ARG', message });
  });
}
