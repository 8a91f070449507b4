// Unit tests of the memory host's frames, and of the server's side on the real process. What needs a GPU is in
// test/gpu/cuda_shared_memory.py.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { afterEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SHM_STEP_BYTES_MAX } from '../domain/limits.ts';
import { findGpus } from '../lib/gpu-devices.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import type { HostCommand } from './host-process.ts';
import { MemoryHost } from './memory-host.ts';
import { encodeMemoryFrame, FRAME_MEMORY_WRITE } from './memory-host-protocol.ts';
import { FRAME_ALIGNMENT } from './protocol.ts';

const COMMAND: HostCommand = {
  file: process.execPath,
  args: [fileURLToPath(new URL('../memory-host.js', import.meta.url))],
};
const gpuSkip = findGpus().length > 0 && 'this machine has a GPU';
const procSkip = !existsSync('/proc/self/stat') && 'this platform has no /proc';

function roundTrip(payload: readonly Buffer[]): Frame {
  const frames: Frame[] = [];
  const reader = new FrameReader({ isContiguous: true, onFrame: (frame) => frames.push(frame) });
  const parts = encodeMemoryFrame(FRAME_MEMORY_WRITE, { id: 5 }, payload);
  const bytes = Buffer.concat(parts);
  assert.equal(bytes.length % FRAME_ALIGNMENT, 0);
  reader.push(bytes);
  assert.equal(frames.length, 1);
  return frames[0]!;
}

test('frames carry their message and all pieces of their payload', () => {
  for (const byteLength of [0, 1, 64, 1000, 300_001]) {
    const bytes = Buffer.alloc(byteLength, 'abcdefghijk');
    const cut = byteLength >> 1;
    const frame = roundTrip([bytes.subarray(0, cut), bytes.subarray(cut)]);
    assert.equal(frame.type, FRAME_MEMORY_WRITE);
    assert.deepEqual(JSON.parse(frame.header.toString()), { id: 5 });
    assert.equal(frame.payloadBytes, byteLength);
    assert.ok(Buffer.concat(frame.payload).equals(bytes));
  }
});

test('the pieces of a large payload are not copied', () => {
  const large = Buffer.alloc(300_000);
  assert.ok(encodeMemoryFrame(FRAME_MEMORY_WRITE, { id: 1 }, [large]).includes(large));
});

describe('the memory host', { skip: procSkip }, () => {
  const running: MemoryHost[] = [];
  const exits: string[] = [];
  const launch = async (command = COMMAND): Promise<MemoryHost> => {
    const host = await MemoryHost.launch(command, {
      onLog: () => {},
      onExit: (reason) => exits.push(reason),
    });
    running.push(host);
    return host;
  };
  afterEach(async () => {
    await Promise.all(running.splice(0).map((host) => host.stop()));
    exits.length = 0;
  });

  test('refuses what is not open, too long or no handle, and goes on', async () => {
    const host = await launch();
    const notOpen = { code: 'INTERNAL', message: 'no CUDA region 7 is open' };
    await assert.rejects(host.read({ region: 7, position: 0, byteLength: 8 }), notOpen);
    await assert.rejects(host.write({ region: 7, position: 0 }, [Buffer.alloc(1_000_000)]), notOpen);
    await assert.rejects(host.close(7), notOpen);
    await assert.rejects(host.read({ region: 7, position: 0, byteLength: SHM_STEP_BYTES_MAX + 1 }), {
      code: 'INVALID_ARG',
      message: `cannot read ${SHM_STEP_BYTES_MAX + 1} bytes at once`,
    });
    const short = host.open({ name: 'r', deviceId: 0, byteSize: 8 }, Buffer.alloc(63));
    await assert.rejects(short, { code: 'INVALID_ARG', message: 'a handle has 64 bytes' });
    assert.equal(host.isEnded, false);
  });

  test('answers many operations in order', async () => {
    const host = await launch();
    const answered: number[] = [];
    const all = Array.from({ length: 200 }, (_, index) =>
      host
        .write({ region: index, position: 0 }, [Buffer.alloc(index * 1000)])
        .catch((error: Error) => answered.push(Number(/\d+/.exec(error.message)?.[0]))),
    );
    await Promise.all(all);
    assert.deepEqual(
      answered,
      all.map((_, index) => index),
    );
  });

  test('says that there is no CUDA driver', { skip: gpuSkip }, async () => {
    const host = await launch();
    for (let i = 0; i < 2; i++) {
      await assert.rejects(host.open({ name: 'r', deviceId: 0, byteSize: 8 }, Buffer.alloc(64)), {
        code: 'UNAVAILABLE',
        message: /^failed to register CUDA shared memory region 'r': (libcuda\.so\.1|the CUDA driver) .+/,
      });
    }
    assert.equal(host.isEnded, false);
  });

  test('that dies fails all operations under way, and later ones', async () => {
    const host = await launch();
    process.kill(host.pid, 'SIGSTOP');
    const copies = [1, 2, 3].map((region) => host.read({ region, position: 0, byteLength: 8 }));
    const copy = host.write({ region: 4, position: 0 }, [Buffer.alloc(SHM_STEP_BYTES_MAX)]);
    const settled = Promise.allSettled([...copies, copy]);
    process.kill(host.pid, 'SIGKILL');
    const expected = { code: 'UNAVAILABLE', message: 'the memory host was ended by signal SIGKILL' };
    for (const result of await settled) {
      assert.ok(result.status === 'rejected');
      const { code, message } = result.reason;
      assert.deepEqual({ code, message }, expected);
    }
    assert.deepEqual(exits, ['was ended by signal SIGKILL']);
    assert.equal(host.isEnded, true);
    await assert.rejects(host.close(1), expected);
    await host.stop();
  });

  test('ends when it is told to', async () => {
    const host = await launch();
    await host.stop();
    assert.deepEqual(exits, ['exited with code 0']);
    assert.throws(() => process.kill(host.pid, 0), { code: 'ESRCH' });
  });

  test('that does not start is refused with the reason', async () => {
    await assert.rejects(launch({ file: 'no-such-program-here', args: [] }), {
      code: 'UNAVAILABLE',
      message: /^the memory host could not be started: .*ENOENT/,
    });
    await assert.rejects(launch({ file: process.execPath, args: ['-e', 'process.exit(3)'] }), {
      code: 'UNAVAILABLE',
      message: 'the memory host exited with code 3',
    });
    const garbage = "require('node:fs').writeSync(3, Buffer.alloc(64, 255)); setInterval(() => {}, 1000)";
    await assert.rejects(launch({ file: process.execPath, args: ['-e', garbage] }), {
      message: 'the memory host broke off: host protocol: frame is too large (was ended by signal SIGKILL)',
    });
  });
});
