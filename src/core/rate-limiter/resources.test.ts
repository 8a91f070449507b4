// Pool sizes and the texts of configs that could never run, as a real Triton 2.51 gave them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelInstanceGroup } from '../../domain/model-config.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import { limitsOf, poolSizes, type ResourceLimit } from './resources.ts';

function groupOf(text: string): ModelInstanceGroup {
  return parseModelConfig(`instance_group { ${text} }`).instance_group[0]!;
}

function instance(resources: string, deviceId = 0) {
  return limitsOf(groupOf(`rate_limiter { ${resources} }`), deviceId);
}

function sizesOf(instances: ReturnType<typeof instance>[], limits: ResourceLimit[] = []) {
  return Object.fromEntries(poolSizes(instances, limits));
}

test('a group without a rate limiter needs nothing and has priority 1; so has one with priority 0', () => {
  assert.deepEqual(limitsOf(groupOf(''), 0), { needs: new Map(), priority: 1 });
  assert.equal(instance('priority: 0').priority, 1);
  assert.equal(instance('priority: 7').priority, 7);
});

test('a pool is as large as the most demanding instance needs, by device or for all', () => {
  const small = instance('resources [ { name: "r" count: 2 }, { name: "g" global: true count: 5 } ]');
  const large = instance('resources [ { name: "r" count: 4 }, { name: "g" global: true count: 3 } ]');
  const elsewhere = instance('resources { name: "r" count: 1 }', 1);
  assert.deepEqual(sizesOf([small, large, elsewhere]), { '-2:g': 5, '0:r': 4, '1:r': 1 });
});

test('limits are the sizes: of one device, of every device, and for a global resource of any', () => {
  const needs = 'resources [ { name: "r" count: 2 }, { name: "g" global: true count: 1 } ]';
  const limits = [
    { name: 'r', count: 3, device: -1 },
    { name: 'r', count: 9, device: 1 },
    { name: 'g', count: 4, device: 7 },
  ];
  const sizes = sizesOf([instance(needs, 0), instance(needs, 1)], limits);
  assert.deepEqual(sizes, { '-2:g': 4, '0:r': 3, '1:r': 9 });
});

test('what could never run is refused in the words of Triton', () => {
  const needy = instance('resources { name: "resource1" count: 4 }');
  const text = (count: number) =>
    `Resource count for "resource1" is limited to ${count} which will prevent scheduling of one or more model instances, the minimum required count is 4`;
  const refusal = (message: string) => ({ code: 'INVALID_ARG', message });
  const limit = (fields: Partial<ResourceLimit>) => [{ name: 'resource1', count: 1, device: -1, ...fields }];
  assert.throws(() => sizesOf([needy], limit({})), refusal(text(1)));
  // Names are compared as they are written, and one limit makes all others needed.
  assert.throws(() => sizesOf([needy], limit({ name: 'RESOURCE1', count: 8 })), refusal(text(0)));
  assert.throws(() => sizesOf([needy], limit({ count: 8, device: 1 })), refusal(text(0)));
  assert.deepEqual(sizesOf([needy], limit({ count: 8, device: 0 })), { '0:resource1': 8 });
});

test('a name cannot be global here and of a device there', () => {
  const instances = [
    instance('resources { name: "resource2" global: true count: 1 }'),
    instance('resources { name: "resource2" count: 1 }'),
  ];
  assert.throws(() => sizesOf(instances), {
    code: 'INVALID_ARG',
    message:
      'Resource "resource2" is present as both global and device-specific resource in the model configuration.',
  });
});
