import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cachedFolder } from './cached-folder.ts';

describe('a cached folder', () => {
  const cache = mkdtempSync(join(tmpdir(), 'nereid-cache-'));
  const given = process.env.XDG_CACHE_HOME;
  before(() => {
    process.env.XDG_CACHE_HOME = cache;
  });
  after(() => {
    if (given === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = given;
    rmSync(cache, { recursive: true, force: true });
  });

  test('is made once, also when asked for twice at a time', async () => {
    let count = 0;
    const make = async (folder: string) => {
      count++;
      writeFileSync(join(folder, 'made'), '');
    };
    const [first, second] = await Promise.all([cachedFolder('a', make), cachedFolder('a', make)]);
    assert.equal(first, second);
    assert.equal(await cachedFolder('a', make), first);
    assert.equal(count, 1);
    assert.deepEqual(readdirSync(first), ['made']);
  });

  test('that could not be made leaves nothing behind and is tried again', async () => {
    const refuse = async (folder: string) => {
      writeFileSync(join(folder, 'half'), '');
      throw new Error('no');
    };
    await assert.rejects(cachedFolder('b', refuse), /^Error: no$/);
    const left = readdirSync(join(cache, 'nereid', 'python')).filter((name) => name.startsWith('b'));
    assert.deepEqual(left, []);
    const folder = await cachedFolder('b', async () => {});
    assert.deepEqual(readdirSync(folder), []);
  });

  test('that someone removed is made again', async () => {
    const folder = await cachedFolder('c', async () => {});
    rmSync(folder, { recursive: true });
    const again = await cachedFolder('c', async () => {});
    assert.notEqual(again, folder);
    assert.deepEqual(readdirSync(again), []);
  });
});
