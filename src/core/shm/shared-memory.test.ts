// Unit tests of the registered regions, on real objects.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readlinkSync, rmdirSync, symlinkSync, unlinkSync } from 'node:fs';
import { afterEach, describe, test } from 'node:test';
import { SHM_REGIONS_MAX } from '../../domain/limits.ts';
import { contiguous } from '../../domain/tensor.ts';
import { SharedMemory } from './shared-memory.ts';
import { createObject, shmSkip, type TestObject } from './test-object.ts';

const PAGE = 4096;
const LARGE = 20 * 1024 * 1024 + 5;

const create = (
  options: { isAllowed?: boolean; allowedPrefixes?: readonly string[]; hasGpu?: boolean } = {},
) =>
  new SharedMemory({
    isAllowed: options.isAllowed ?? true,
    allowedPrefixes: options.allowedPrefixes,
    hasGpu: options.hasGpu ?? false,
  });

/**
 * Descriptors of this process that lead to the object; a removed one is shown as deleted. Others come and go while they
 * are listed (the runner's own pipes and directories), so that a descriptor that is gone by now is not this object's.
 */
function openCount(object: TestObject): number {
  const leadsToObject = (descriptor: string): boolean => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`);
      return target === object.path || target === `${object.path} (deleted)`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
      throw error;
    }
  };
  return readdirSync('/proc/self/fd').filter(leadsToObject).length;
}

describe('registered regions', { skip: shmSkip }, () => {
  const made: TestObject[] = [];
  const object = (data: Uint8Array = Buffer.alloc(2 * PAGE)): TestObject => {
    const one = createObject(data);
    made.push(one);
    return one;
  };
  afterEach(() => {
    for (const one of made.splice(0)) one.remove();
  });

  test('are listed in the order of their names, with the key as it was given', () => {
    const memory = create();
    const { key } = object();
    memory.registerSystem({ name: 'b', key: key.slice(1), offset: PAGE, byteSize: 64 });
    memory.registerSystem({ name: 'a', key, offset: 0, byteSize: 8 });
    const a = { name: 'a', key, offset: 0, byteSize: 8 };
    const b = { name: 'b', key: key.slice(1), offset: PAGE, byteSize: 64 };
    assert.deepEqual(memory.systemStatus(''), [a, b]);
    assert.deepEqual(memory.systemStatus('b'), [b]);
    assert.throws(() => memory.systemStatus('c'), {
      code: 'NOT_FOUND',
      message: "Unable to find system shared memory region: 'c'",
    });
    memory.close();
  });

  test('have a name of their own and lie inside their object', () => {
    const memory = create();
    const { key } = object(Buffer.alloc(PAGE));
    memory.registerSystem({ name: 'r', key, offset: 0, byteSize: 64 });
    assert.throws(() => memory.registerSystem({ name: 'r', key, offset: 0, byteSize: 64 }), {
      code: 'ALREADY_EXISTS',
      message: "shared memory region 'r' already in manager",
    });
    for (const [offset, byteSize] of [
      [0, PAGE + 1],
      [PAGE, PAGE],
      [2n ** 63n, 2n ** 63n],
    ] as const) {
      assert.throws(() => memory.registerSystem({ name: 's', key, offset, byteSize }), {
        code: 'INVALID_ARG',
        message: "failed to register shared memory region 's': invalid args",
      });
    }
    for (const [offset, byteSize] of [
      [64, 1024],
      [0, 0],
    ] as const) {
      assert.throws(() => memory.registerSystem({ name: 's', key, offset, byteSize }), {
        code: 'INVALID_ARG',
        message:
          "failed to register shared memory region 's': unable to process address spaceInvalid argument",
      });
    }
    assert.deepEqual(memory.systemStatus('').length, 1);
    memory.close();
  });

  test('are regular files: no link, no folder, nothing that is missing', () => {
    const memory = create();
    const target = object();
    const link = `${target.path}-link`;
    const folder = `${target.path}-folder`;
    symlinkSync(target.path, link);
    mkdirSync(folder);
    try {
      for (const key of [`${target.key}-link`, `${target.key}-folder`, `${target.key}-nowhere`]) {
        assert.throws(() => memory.registerSystem({ name: 'r', key, offset: 0, byteSize: 8 }), {
          code: 'INTERNAL',
          message: `Unable to open shared memory region: '${key}'`,
        });
      }
    } finally {
      unlinkSync(link);
      rmdirSync(folder);
    }
    assert.deepEqual(memory.systemStatus(''), []);
  });

  test('hold one descriptor each, and a refused one holds none', () => {
    const memory = create();
    const one = object();
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: 8 });
    memory.registerSystem({ name: 's', key: one.key, offset: 0, byteSize: 8 });
    assert.throws(() => memory.registerSystem({ name: 't', key: one.key, offset: 0, byteSize: 3 * PAGE }));
    assert.equal(openCount(one), 2);
    memory.unregisterSystem('nobody');
    memory.unregisterSystem('r');
    assert.equal(openCount(one), 1);
    memory.unregisterSystem('');
    assert.equal(openCount(one), 0);
  });

  test(`are at most ${SHM_REGIONS_MAX}`, () => {
    const memory = create();
    const one = object();
    let registered = 0;
    let refusal: unknown;
    while (refusal === undefined && registered <= SHM_REGIONS_MAX) {
      try {
        memory.registerSystem({ name: `r${registered}`, key: one.key, offset: 0, byteSize: 8 });
        registered++;
      } catch (thrown) {
        refusal = thrown;
      }
    }
    // Where the system gives the process fewer descriptors, that bound comes first.
    assert.ok(registered <= SHM_REGIONS_MAX);
    assert.match(String(refusal), /regions are registered already|no file descriptor left/);
    memory.close();
    assert.equal(openCount(one), 0);
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: 8 });
    memory.close();
  });

  test('are read and written from their own offset', () => {
    const memory = create();
    const one = object(Buffer.from(Array.from({ length: 2 * PAGE }, (_, i) => i & 0xff)));
    memory.registerSystem({ name: 'r', key: one.key, offset: PAGE, byteSize: PAGE });
    const range = memory.hold({ region: 'r', offset: 3, byteSize: 4 });
    const data = range.read();
    assert.ok(!(data instanceof Promise));
    assert.deepEqual([...contiguous(data)], [3, 4, 5, 6]);
    range.write([Buffer.from([9]), Buffer.from([8, 7])], 3);
    assert.deepEqual([...one.bytes().subarray(PAGE + 2, PAGE + 8)], [2, 9, 8, 7, 6, 7]);
    range.release();
    memory.close();
  });

  test('are read and written in steps when large', async () => {
    const memory = create();
    const source = Buffer.alloc(LARGE, 'abcdefghijklmnopq');
    const one = object(source);
    const other = object(Buffer.alloc(LARGE + 2));
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: LARGE });
    memory.registerSystem({ name: 's', key: other.key, offset: 0, byteSize: LARGE + 2 });
    const data = await memory.hold({ region: 'r', offset: 0, byteSize: LARGE }).read();
    assert.ok(contiguous(data).equals(source));
    const views = [source.subarray(0, 7), source.subarray(7)];
    await memory.hold({ region: 's', offset: 1, byteSize: LARGE }).write(views, LARGE);
    assert.ok(
      other
        .bytes()
        .subarray(1, LARGE + 1)
        .equals(source),
    );
    assert.deepEqual([other.bytes()[0], other.bytes()[LARGE + 1]], [0, 0]);
    memory.close();
  });

  test('refuse ranges that are not in them', () => {
    const memory = create();
    memory.registerSystem({ name: 'r', key: object().key, offset: 0, byteSize: 64 });
    const hold = (region: string, offset: number | bigint, byteSize: number | bigint) => () =>
      memory.hold({ region, offset, byteSize });
    assert.throws(hold('nobody', 0, 1), {
      code: 'NOT_FOUND',
      message: "Unable to find shared memory region: 'nobody'",
    });
    const offsetText = "Invalid offset for shared memory region: 'r'";
    assert.throws(hold('r', 64, 0), { code: 'INVALID_ARG', message: offsetText });
    assert.throws(hold('r', 2n ** 64n - 1n, 2n ** 64n - 1n), { code: 'INVALID_ARG', message: offsetText });
    const sumText = "Invalid offset + byte size for shared memory region: 'r'";
    assert.throws(hold('r', 48, 17), { code: 'INVALID_ARG', message: sumText });
    assert.throws(hold('r', 0, 2n ** 64n - 1n), { code: 'INVALID_ARG', message: sumText });
    assert.throws(hold('r', 1, 2n ** 64n - 1n), {
      code: 'INVALID_ARG',
      message:
        "Integer overflow detected: byte_size (18446744073709551615) + offset (1) exceeds maximum value (18446744073709551615) for region 'r'",
    });
    assert.throws(hold('r', -1, 1), { message: offsetText });
    assert.throws(hold('r', 0, -1), { message: sumText });
    assert.throws(hold('r', 1, -1), {
      message: /^Integer overflow detected: byte_size \(18446744073709551615\)/,
    });
    hold('r', 48, 16)();
    hold('r', 63, 0)();
    memory.close();
  });

  test('go on after their object was removed', () => {
    const memory = create();
    const one = object(Buffer.from('abcdefgh'));
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: 8 });
    one.remove();
    const data = memory.hold({ region: 'r', offset: 2, byteSize: 3 }).read();
    assert.equal(contiguous(data as Buffer[]).toString(), 'cde');
    memory.close();
  });

  test('refuse a copy when their object has become shorter, and do not make it longer', async () => {
    const memory = create();
    const one = object(Buffer.alloc(LARGE));
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: LARGE });
    const small = memory.hold({ region: 'r', offset: 100, byteSize: 100 });
    const large = memory.hold({ region: 'r', offset: 0, byteSize: LARGE });
    one.truncate(150);
    const text = /has become shorter since it was registered: it ends before byte/;
    assert.throws(() => small.read(), { code: 'INVALID_ARG', message: text });
    assert.throws(() => small.write([Buffer.alloc(100)], 100), { code: 'INVALID_ARG', message: text });
    await assert.rejects(async () => large.read(), { code: 'INVALID_ARG', message: text });
    await assert.rejects(async () => large.write([Buffer.alloc(LARGE)], LARGE), { message: text });
    assert.equal(one.bytes().length, 150);
    memory.close();
  });

  test('are unregistered after the last request that uses them', () => {
    const memory = create();
    const one = object(Buffer.from('abcdefgh'));
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: 8 });
    const first = memory.hold({ region: 'r', offset: 0, byteSize: 8 });
    const second = memory.hold({ region: 'r', offset: 0, byteSize: 8 });
    memory.unregisterSystem('r');
    first.release();
    first.release();
    assert.equal(memory.systemStatus('').length, 1);
    assert.equal(contiguous(second.read() as Buffer[]).toString(), 'abcdefgh');
    second.release();
    assert.deepEqual(memory.systemStatus(''), []);
    assert.equal(openCount(one), 0);
  });

  test('keep their file open for a copy whose range was let go', async () => {
    const memory = create();
    const source = Buffer.alloc(LARGE, 'xyz');
    const one = object(source);
    memory.registerSystem({ name: 'r', key: one.key, offset: 0, byteSize: LARGE });
    const range = memory.hold({ region: 'r', offset: 0, byteSize: LARGE });
    const copy = range.read();
    memory.unregisterSystem('r');
    range.release();
    assert.ok(contiguous(await copy).equals(source));
    assert.equal(openCount(one), 0);
  });

  test('are not to be had when clients may not use shared memory; status still answers', () => {
    const memory = create({ isAllowed: false });
    const expected = {
      code: 'UNSUPPORTED',
      message: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    };
    const { key } = object();
    assert.throws(() => memory.registerSystem({ name: 'r', key, offset: 0, byteSize: 8 }), expected);
    assert.throws(() => memory.unregisterSystem(''), expected);
    assert.throws(() => memory.unregisterCuda('r'), expected);
    assert.deepEqual(memory.systemStatus(''), []);
  });

  test('of CUDA are refused, and told from system regions', () => {
    const memory = create();
    const cuda = { name: 'c', rawHandle: Buffer.alloc(64), deviceId: 0, byteSize: 64 };
    assert.throws(() => memory.registerCuda(cuda), {
      code: 'INVALID_ARG',
      message: 'failed to register shared memory region: invalid args',
    });
    assert.throws(() => create({ hasGpu: true }).registerCuda(cuda), {
      code: 'INVALID_ARG',
      message: "failed to register CUDA shared memory region: 'c', GPUs not supported",
    });
    assert.throws(() => memory.registerCuda({ ...cuda, rawHandle: Buffer.alloc(63) }), {
      message: "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
    });
    assert.deepEqual(memory.cudaStatus(''), []);
    assert.throws(() => memory.cudaStatus('c'), {
      code: 'NOT_FOUND',
      message: "Unable to find cuda shared memory region: 'c'",
    });
    memory.registerSystem({ name: 'c', key: object().key, offset: 0, byteSize: 8 });
    assert.throws(() => memory.cudaStatus('c'), {
      message: "The region named 'c' is registered as system shared memory, not CUDA shared memory",
    });
    memory.unregisterCuda('');
    assert.equal(memory.systemStatus('').length, 1);
    memory.close();
  });
});
