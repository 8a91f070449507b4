// Unit tests of CUDA regions as far as they go without a GPU: the real memory host, which finds no driver here, and
// hosts that do not start. What needs a GPU is in test/gpu/cuda_shared_memory.py.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { findGpus } from '../../lib/gpu-devices.ts';
import { createPrng } from '../../lib/prng.ts';
import { splitBytes } from './cuda-memory.ts';
import { SharedMemory } from './shared-memory.ts';
import { createObject, shmSkip } from './test-object.ts';

const MEMORY_HOST = fileURLToPath(new URL('../../memory-host.js', import.meta.url));
const gpuSkip = findGpus().length > 0 && 'this machine has a GPU';

const create = (args: readonly string[] = [MEMORY_HOST]) => {
  const logged: string[] = [];
  const memory = new SharedMemory({
    isAllowed: true,
    allowedPrefixes: undefined,
    hasGpu: true,
    memoryHostCommand: { file: process.execPath, args },
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  return { memory, logged };
};

const region = { name: 'c', rawHandle: Buffer.alloc(64), deviceId: 0, byteSize: 64 };
const taken = { code: 'ALREADY_EXISTS', message: "shared memory region 'c' already in manager" };

test('bytes are split anywhere, without a copy', () => {
  const prng = createPrng(7);
  for (let round = 0; round < 200; round++) {
    const views = Array.from({ length: prng.integer(0, 5) }, () =>
      Buffer.alloc(prng.integer(0, 9), 'abcdefghi'),
    );
    const all = Buffer.concat(views);
    const at = prng.integer(0, all.length);
    const [first, rest] = splitBytes(views, at);
    assert.equal(Buffer.concat(first).toString(), all.toString('latin1', 0, at));
    assert.equal(Buffer.concat(rest).toString(), all.toString('latin1', at));
    for (const view of [...first, ...rest]) assert.ok(views.some(({ buffer }) => buffer === view.buffer));
  }
});

describe('a CUDA region', () => {
  test('is refused where there is no driver, and its name is free again', { skip: gpuSkip }, async () => {
    const { memory } = create();
    const expected = {
      code: 'UNAVAILABLE',
      message: /^failed to register CUDA shared memory region 'c': (libcuda\.so\.1|the CUDA driver) .+/,
    };
    await assert.rejects(memory.registerCuda(region), expected);
    await assert.rejects(memory.registerCuda(region), expected);
    assert.deepEqual(memory.cudaStatus(''), []);
    assert.throws(() => memory.hold({ region: 'c', offset: 0, byteSize: 8 }), { code: 'NOT_FOUND' });
    await memory.unregisterCuda('c');
    await memory.unregisterCuda('');
    await memory.close();
    await assert.rejects(memory.registerCuda(region), /the server is exiting/);
  });

  test('shares its names with system regions, also while it is being opened', { skip: shmSkip }, async () => {
    const { memory } = create();
    const object = createObject(Buffer.alloc(64));
    const system = { name: 'c', key: object.key, offset: 0, byteSize: 64 };
    const opening = memory.registerCuda(region);
    assert.throws(() => memory.registerCuda(region), taken);
    assert.throws(() => memory.registerSystem(system), taken);
    await assert.rejects(opening);
    memory.registerSystem(system);
    assert.throws(() => memory.registerCuda(region), taken);
    await memory.unregisterCuda('');
    await memory.unregisterCuda('c');
    assert.equal(memory.systemStatus('').length, 1);
    await memory.close();
    object.remove();
  });

  test('is refused when the memory host does not run, and the next one starts another', async () => {
    const { memory, logged } = create(['-e', 'process.exit(3)']);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(memory.registerCuda(region), {
        code: 'UNAVAILABLE',
        message: "failed to register CUDA shared memory region 'c': the memory host exited with code 3",
      });
    }
    const line = 'error the memory host exited with code 3: all CUDA shared memory regions are lost';
    assert.deepEqual(logged, [line, line]);
    await memory.close();
  });
});
