// Clients that go away, stop reading, send nothing or close half of their connection. Afterwards nothing of them is
// left in the server: no request, no descriptor, no memory.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, inferNow, waitUntil } from '../support/load.ts';
import { descriptorCountOf, procSkip, residentBytesOf } from '../support/processes.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const CLIENTS = 200;
const MEMORY_GROWTH_BYTES_MAX = 200 * 1024 * 1024;
/** Of the answer that nobody reads: larger than what the kernel buffers on both sides. */
const LARGE_ELEMENTS = 4 * 1024 * 1024;

function rawInfer(model: string, body: string): string {
  return `POST /v2/models/${model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** Small and repeatable; the moments need no quality. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('clients that go away', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
    addIdentity(repository, {
      name: 'slow',
      delayMs: 300,
      config: 'dynamic_batching { preferred_batch_size: [ 1 ] }',
    });
    addIdentity(repository, { name: 'half', delayMs: 100 });
    server = await startServer({ repository: repository.path });
    await inferNow(server, 'quick', identityBody(1));
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  async function metric(pattern: RegExp): Promise<number> {
    const text = await (await fetch(server.metricsUrl, { headers: { Connection: 'close' } })).text();
    return Number(pattern.exec(text)?.[1]);
  }
  const pendingOf = (model: string) =>
    metric(new RegExp(`nv_inference_pending_request_count\\{model="${model}",version="1"\\} ([0-9]+)`));
  const cancelledOf = (model: string) =>
    metric(
      new RegExp(`nv_inference_request_failure\\{model="${model}",reason="CANCELED",version="1"\\} ([0-9]+)`),
    );

  async function checkNothingLeft(descriptorsBefore: number): Promise<void> {
    assert.equal((await inferNow(server, 'quick', identityBody(7)))[0], 7);
    for (const model of ['quick', 'slow', 'half']) {
      assert.ok(await waitUntil(async () => (await pendingOf(model)) === 0), `${model} has pending requests`);
    }
    // Our own keep-alive connections come and go; anything beyond a few is a leak.
    const isBack = () => descriptorCountOf(server.pid) <= descriptorsBefore + 4;
    assert.ok(
      await waitUntil(isBack),
      `${descriptorCountOf(server.pid)} descriptors, ${descriptorsBefore} before`,
    );
  }

  test('whole, half and byte-by-byte requests that end at any moment', async () => {
    const descriptors = descriptorCountOf(server.pid);
    const residentBytes = residentBytesOf(server.pid);
    const random = createRandom(8);
    const client = async (index: number) => {
      const connection = new RawConnection(server);
      const kind = index % 4;
      // Not slow when pipelined: the later requests of one connection are not cancelled with it yet.
      const text = rawInfer(random() < 0.5 || kind === 3 ? 'quick' : 'slow', identityBody(index));
      if (kind === 0) connection.send(text);
      else if (kind === 1) connection.send(text.slice(0, Math.floor(random() * text.length)));
      else if (kind === 2) {
        const count = Math.floor(random() * text.length);
        for (let i = 0; i < count; i++) {
          connection.send(text[i]!);
          if (i % 16 === 0) await sleep(1);
        }
      } else connection.send(text, text);
      await sleep(random() * 200);
      if (random() < 0.5) connection.destroy();
      else connection.socket.resetAndDestroy();
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
    await checkNothingLeft(descriptors);
    const grownBytes = residentBytesOf(server.pid) - residentBytes;
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
  });

  test('cancelled while they wait behind another: they are counted and never run', async () => {
    // Until it has seen one answer, the scheduler takes the model for a quick one and hands it two batches.
    await inferNow(server, 'slow', identityBody(0));
    const before = await cancelledOf('slow');
    const first = call(server, { path: '/v2/models/slow/infer', body: identityBody(0) });
    await sleep(50);
    const waiting = Array.from({ length: 10 }, (_, i) => {
      const connection = new RawConnection(server);
      connection.send(rawInfer('slow', identityBody(i)));
      return connection;
    });
    assert.ok(
      await waitUntil(async () => (await pendingOf('slow')) === 10, 1000),
      'the requests do not wait',
    );
    for (const connection of waiting) connection.destroy();
    assert.equal((await first).status, 200);
    assert.ok(
      await waitUntil(async () => (await cancelledOf('slow')) === before + 10, 2000),
      `${(await cancelledOf('slow')) - before} of 10 were cancelled`,
    );
    assert.equal(await pendingOf('slow'), 0);
  });

  test('slow readers that never read a large answer, and clients that send nothing', async () => {
    const descriptors = descriptorCountOf(server.pid);
    const json = JSON.stringify({
      inputs: [
        {
          name: 'INPUT0',
          datatype: 'FP32',
          shape: [1, LARGE_ELEMENTS],
          parameters: { binary_data_size: LARGE_ELEMENTS * 4 },
        },
      ],
      outputs: [{ name: 'OUTPUT0', parameters: { binary_data: true } }],
    });
    const head = `POST /v2/models/quick/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: ${json.length}\r\nContent-Length: ${json.length + LARGE_ELEMENTS * 4}\r\n\r\n`;
    const clients = Array.from({ length: 8 }, (_, index) => {
      const connection = new RawConnection(server);
      if (index < 4) {
        connection.socket.pause();
        connection.send(head, json, Buffer.alloc(LARGE_ELEMENTS * 4));
      }
      return connection;
    });
    await sleep(1000);
    assert.equal((await inferNow(server, 'quick', identityBody(3)))[0], 3);
    for (const connection of clients) connection.destroy();
    await checkNothingLeft(descriptors);
  });

  test('a client that closes its own side counts as gone', async () => {
    const before = await cancelledOf('half');
    const connection = new RawConnection(server, { isHalfOpenAllowed: true });
    connection.send(rawInfer('half', identityBody(4)));
    connection.socket.end();
    await waitUntil(async () => (await cancelledOf('half')) === before + 1);
    connection.destroy();
  });

  test('pipelined requests whose turn has not come are cancelled too', async () => {
    const before = await cancelledOf('slow');
    const clients = Array.from({ length: 20 }, () => {
      const connection = new RawConnection(server);
      connection.send(rawInfer('slow', identityBody(5)), rawInfer('slow', identityBody(6)));
      return connection;
    });
    // One request of a connection is open at a time; the other waits for its turn and must never run.
    assert.ok(await waitUntil(async () => (await pendingOf('slow')) >= 15));
    for (const connection of clients) connection.destroy();
    assert.ok(await waitUntil(async () => (await pendingOf('slow')) === 0));
    const cancelled = (await cancelledOf('slow')) - before;
    assert.ok(cancelled >= 15 && cancelled <= 20, `${cancelled} were cancelled`);
  });
});
