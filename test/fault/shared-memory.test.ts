// Clients that pull their shared memory away, or lie about it. A server that mapped the objects would die of
// SIGBUS; ours answers with an error, and the next good request works.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import { type Answer, call, waitUntil } from '../support/load.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const FOLDER = '/dev/shm';
const NAME = `nereid-fault-${process.pid}`;
const PATH = `${FOLDER}/${NAME}`;
const LARGE_BYTES = 16 * 1024 * 1024;
const shmSkip = existsSync(FOLDER) ? false : `this platform has no ${FOLDER}`;

describe('shared memory', { skip: shmSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'echo' });
    addIdentity(repository, { name: 'slow', delayMs: 400 });
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });
  afterEach(async () => {
    await post('/v2/systemsharedmemory/unregister', '');
    rmSync(PATH, { force: true });
  });

  const post = (path: string, body: string): Promise<Answer> => call(server, { path, body });
  const register = (region: string, byteSize: number, key = NAME): Promise<Answer> =>
    post(`/v2/systemsharedmemory/region/${region}/register`, JSON.stringify({ key, byte_size: byteSize }));
  const place = (region: string, byteSize: number, offset = 0) => ({
    parameters: {
      shared_memory_region: region,
      shared_memory_byte_size: byteSize,
      shared_memory_offset: offset,
    },
  });
  /** One FP32 row of `byteSize` bytes from the start of the region; with `isOut` written behind itself. */
  const infer = (region: string, byteSize: number, options: { model?: string; isOut?: boolean } = {}) =>
    post(
      `/v2/models/${options.model ?? 'echo'}/infer`,
      JSON.stringify({
        inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, byteSize / 4], ...place(region, byteSize) }],
        ...(options.isOut ? { outputs: [{ name: 'OUTPUT0', ...place(region, byteSize, byteSize) }] } : {}),
      }),
    );

  /** A new object under another name works, and the server is the one that was started. */
  async function assertWellAfter(): Promise<void> {
    const name = `${NAME}-good`;
    const row = Buffer.from(new Float32Array([1.5, -2]).buffer);
    writeFileSync(`${FOLDER}/${name}`, Buffer.concat([row, Buffer.alloc(8)]));
    try {
      assert.equal((await register('good', 16, name)).status, 200);
      const answer = await infer('good', 8, { isOut: true });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(readFileSync(`${FOLDER}/${name}`).subarray(8), row);
    } finally {
      rmSync(`${FOLDER}/${name}`, { force: true });
    }
    assert.equal((await call(server, { path: '/v2/health/ready' })).status, 200);
  }

  function assertRefused(answer: Answer, pattern: RegExp): void {
    assert.equal(answer.status, 400, answer.text);
    assert.match((JSON.parse(answer.text) as { error: string }).error, pattern);
  }

  for (const [title, byteSize] of [
    ['small', 64],
    ['large', LARGE_BYTES],
  ] as const) {
    test(`an object that became shorter, ${title} inputs`, async () => {
      writeFileSync(PATH, Buffer.alloc(2 * byteSize));
      assert.equal((await register('r', 2 * byteSize)).status, 200);
      for (const left of [byteSize - 1, 1, 0]) {
        truncateSync(PATH, left);
        assertRefused(await infer('r', byteSize), /has become shorter since it was registered/);
      }
      truncateSync(PATH, 2 * byteSize);
      assert.equal((await infer('r', byteSize, { isOut: true })).status, 200);
      await assertWellAfter();
    });

    test(`an object that became shorter, ${title} outputs`, async () => {
      writeFileSync(PATH, Buffer.alloc(2 * byteSize));
      assert.equal((await register('r', 2 * byteSize)).status, 200);
      truncateSync(PATH, 2 * byteSize - 1);
      assertRefused(
        await infer('r', byteSize, { isOut: true }),
        /has become shorter since it was registered/,
      );
      assert.equal(readFileSync(PATH).length, 2 * byteSize - 1);
      await assertWellAfter();
    });
  }

  test('an object that becomes shorter and longer while it is used', async () => {
    writeFileSync(PATH, Buffer.alloc(LARGE_BYTES));
    assert.equal((await register('r', LARGE_BYTES)).status, 200);
    const answers = Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const found: Answer[] = [];
        for (let round = 0; round < 6; round++) {
          found.push(await infer('r', i % 2 === 0 ? LARGE_BYTES / 2 : 4096, { isOut: true }));
        }
        return found;
      }),
    );
    let isDone = false;
    void answers.then(() => {
      isDone = true;
    });
    for (let round = 0; !isDone; round++) {
      truncateSync(PATH, round % 2 === 0 ? 0 : LARGE_BYTES);
      await new Promise(setImmediate);
    }
    for (const answer of (await answers).flat()) {
      assert.ok(answer.status === 200 || answer.status === 400, `${answer.status} ${answer.text}`);
    }
    await assertWellAfter();
  });

  test('an object that was deleted goes on, and cannot be registered again', async () => {
    writeFileSync(PATH, Buffer.alloc(64));
    assert.equal((await register('r', 64)).status, 200);
    rmSync(PATH);
    assert.equal((await infer('r', 32, { isOut: true })).status, 200);
    const again = await register('s', 64);
    assert.equal(again.status, 500);
    assert.match(again.text, /Unable to open shared memory region/);
    await assertWellAfter();
  });

  test('an object smaller than it is said to be', async () => {
    writeFileSync(PATH, Buffer.alloc(63));
    assertRefused(await register('r', 64), /failed to register shared memory region 'r': invalid args/);
    assert.equal((await infer('r', 64)).status, 404);
    await assertWellAfter();
  });

  test('a sparse object larger than memory', async () => {
    const tib = 2 ** 40;
    writeFileSync(PATH, '');
    truncateSync(PATH, tib);
    assert.equal((await register('r', tib)).status, 200);
    const answer = await infer('r', tib);
    assert.equal(answer.status, 503, answer.text);
    await assertWellAfter();
  });

  test('a region unregistered while a request uses it', async () => {
    const row = Buffer.from(new Float32Array([3, 4]).buffer);
    writeFileSync(PATH, Buffer.concat([row, Buffer.alloc(8)]));
    assert.equal((await register('r', 16)).status, 200);
    const answer = infer('r', 8, { model: 'slow', isOut: true });
    const isListed = async () =>
      (await call(server, { path: '/v2/systemsharedmemory/status' })).text.includes('"r"');
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal((await post('/v2/systemsharedmemory/region/r/unregister', '')).status, 200);
    assert.ok(await isListed());
    assert.equal((await answer).status, 200);
    assert.deepEqual(readFileSync(PATH).subarray(8), row);
    assert.ok(!(await isListed()));
    await assertWellAfter();
  });

  test('a client that leaves while its request runs lets go of its region', async () => {
    writeFileSync(PATH, Buffer.alloc(16));
    assert.equal((await register('r', 16)).status, 200);
    const controller = new AbortController();
    const body = JSON.stringify({
      inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 2], ...place('r', 8) }],
    });
    const left = fetch(`${server.httpUrl}/v2/models/slow/infer`, {
      method: 'POST',
      body,
      signal: controller.signal,
    }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 100));
    controller.abort();
    await left;
    await post('/v2/systemsharedmemory/region/r/unregister', '');
    const isGone = () =>
      call(server, { path: '/v2/systemsharedmemory/status' }).then(({ text }) => text === '[]');
    assert.ok(await waitUntil(isGone, 5000));
    await assertWellAfter();
  });

  test('a thousand regions, registered and forgotten', async () => {
    writeFileSync(PATH, Buffer.alloc(64));
    for (let i = 0; i < 1000; i++) assert.equal((await register(`r${i}`, 64)).status, 200);
    assert.equal((await infer('r999', 32, { isOut: true })).status, 200);
    const status = await call(server, { path: '/v2/systemsharedmemory/status' });
    assert.equal((JSON.parse(status.text) as unknown[]).length, 1000);
    await assertWellAfter();
    assert.equal((await post('/v2/systemsharedmemory/unregister', '')).status, 200);
    const open = readdirSync(`/proc/${server.pid}/fd`).length;
    assert.ok(open < 500, `${open} descriptors are open`);
  });
});
