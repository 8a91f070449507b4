// Clients of generate_stream that do not read: the model waits for them, memory stays bounded, others are served, and
// whoever reads at last gets every event in order.
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { addRepeat, pendingCount } from '../support/decoupled.ts';
import { inferNow, waitUntil } from '../support/load.ts';
import { childrenOf, cpuMsOf, descriptorCountOf, procSkip, residentBytesOf } from '../support/processes.ts';
import { addIdentity, createRepository, identityBody, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

/** About 80 bytes each on the wire: far more than the kernel and the server keep for one client. */
const EVENT_COUNT = 200_000;
const CLIENTS = 4;
/** All the events of all clients, kept in the server, are more than twice as much. */
const MEMORY_GROWTH_BYTES_MAX = 120 * 1024 * 1024;
/** Less than this in a second is not growth. */
const STEADY_BYTES_MAX = 2 * 1024 * 1024;
/** Of all processes in 300 ms; the pings and timers of an idle server. */
const QUIET_MS_MAX = 60;

describe('clients that do not read their events', { skip: procSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    repository = createRepository();
    addIdentity(repository, { name: 'quick' });
    addRepeat(repository);
    server = await startServer({ repository: repository.path });
    await inferNow(server, 'quick', identityBody(1));
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  /** A connection that has asked for a stream and reads nothing. */
  function ask(eventCount: number): Socket {
    const values = Array.from({ length: eventCount }, (_, i) => i);
    const body = JSON.stringify({ IN: values, DELAY: values.map(() => 0), WAIT: 0 });
    const [host, port] = server.httpAddress.split(':');
    const socket = connect({ host: host!, port: Number(port), noDelay: true });
    socket.on('error', () => {});
    socket.pause();
    socket.write(
      `POST /v2/models/repeat/generate_stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    return socket;
  }

  async function readAll(socket: Socket): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of socket) pieces.push(piece as Buffer);
    return Buffer.concat(pieces).toString('latin1');
  }

  async function isMemorySteady(): Promise<boolean> {
    const before = residentBytesOf(server.pid);
    await sleep(1000);
    return residentBytesOf(server.pid) - before < STEADY_BYTES_MAX;
  }

  /** Neither the server nor a model does anything. */
  async function isQuiet(): Promise<boolean> {
    const cpuMs = () => [server.pid, ...childrenOf(server.pid)].reduce((sum, pid) => sum + cpuMsOf(pid), 0);
    const before = cpuMs();
    await sleep(300);
    return cpuMs() - before < QUIET_MS_MAX;
  }

  test('hold little memory and nobody else; read late, they get everything', async () => {
    const before = residentBytesOf(server.pid);
    const sockets = Array.from({ length: CLIENTS }, () => ask(EVENT_COUNT));
    await waitUntil(isMemorySteady, 30_000);
    const grownBytes = residentBytesOf(server.pid) - before;
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
    assert.equal((await inferNow(server, 'quick', identityBody(7)))[0], 7);
    for (const text of await Promise.all(sockets.map(readAll))) {
      const indexes = [...text.matchAll(/\ndata: \{"IDX":([0-9]+),"OUT":([0-9]+),/g)];
      assert.equal(indexes.length, EVENT_COUNT);
      assert.ok(indexes.every((match, i) => Number(match[1]) === i && Number(match[2]) === i));
      assert.ok(text.endsWith('\r\n0\r\n\r\n'));
    }
  });

  test('and go away: their requests end, their models stop, and nothing is left', async () => {
    const descriptors = descriptorCountOf(server.pid);
    const hosts = childrenOf(server.pid);
    const before = residentBytesOf(server.pid);
    for (let round = 0; round < 3; round++) {
      const sockets = Array.from({ length: CLIENTS }, () => ask(EVENT_COUNT));
      // Once while the models send, once while they wait, once before they begin.
      if (round === 0) await sleep(200);
      if (round === 1) await waitUntil(isQuiet, 15_000);
      for (const socket of sockets) socket.resetAndDestroy();
      const hasEnded = async () => (await pendingCount(server.metricsUrl)) === 0;
      assert.ok(await waitUntil(hasEnded), 'requests are pending');
      assert.ok(await waitUntil(isQuiet), 'a model goes on for nobody');
    }
    const isBack = () => descriptorCountOf(server.pid) <= descriptors + 4;
    assert.ok(await waitUntil(isBack), `${descriptorCountOf(server.pid)} descriptors, ${descriptors} before`);
    const grownBytes = residentBytesOf(server.pid) - before;
    assert.ok(grownBytes < MEMORY_GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
    assert.deepEqual(childrenOf(server.pid), hosts);
    const text = await readAll(ask(3));
    assert.equal(text.match(/data: /g)?.length, 3);
  });
});
