// What the server relies on in a host process and its supervision, with real processes. A host of another
// language runs the same cases with its own command; its backend named `identity` copies inputs to outputs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { StatusError } from '../../src/domain/status.ts';
import type { SentInput, SentRequest } from '../../src/instance/execute-frame.ts';
import { type HostCommand, HostProcess } from '../../src/instance/host-process.ts';
import type { ReceivedOutput } from '../../src/instance/result-codec.ts';
import { NO_CALLS, WatchedInstance } from './watched-instance.ts';

export interface HostCase {
  readonly name: string;
  readonly command: HostCommand;
  /** A command that starts no host while the file at `flagPath` exists. */
  blockedCommand(flagPath: string): HostCommand;
  /** A path in a directory of its own. */
  readonly flagPath: string;
}

const SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "20000" } }';

export function describeHost(hostCase: HostCase): void {
  const { name, command } = hostCase;

  async function withInstance(
    body: (watched: WatchedInstance) => Promise<void>,
    options: { extra?: string; command?: HostCommand } = {},
  ): Promise<void> {
    const watched = new WatchedInstance(options.command ?? command, options.extra);
    try {
      await watched.start();
      await body(watched);
    } finally {
      await watched.instance.stop();
    }
  }

  test(`${name}: says hello, answers a ping, and stops when asked to`, async () => {
    const exits: string[] = [];
    const host = await HostProcess.launch(command, {
      ...NO_CALLS,
      onReply: () => assert.fail(),
      onPart: () => assert.fail(),
      onLog: () => {},
      onExit: (reason) => exits.push(reason),
    });
    const heardMs = host.lastHeardMs;
    host.ping();
    await until(() => host.lastHeardMs > heardMs, 'an answer to the ping');
    await Promise.all([host.stop(), host.stop()]);
    await host.stop();
    assert.deepEqual(exits, ['exited with code 0']);
    assert.equal(isAlive(host.pid), false);
  });

  test(`${name}: a command that cannot be started is an error that says so`, async () => {
    const watched = new WatchedInstance({ file: 'no-such-program', args: [] });
    await assert.rejects(watched.instance.load(), /could not be started: .*ENOENT/);
    await watched.instance.stop();
  });

  test(`${name}: a program that is no host is told by how it ended and what it printed`, async () => {
    const script = 'console.error("out of cheese"); setTimeout(() => process.exit(4), 200)';
    const watched = new WatchedInstance({ file: process.execPath, args: ['-e', script] });
    await assert.rejects(
      watched.instance.load(),
      /host process exited with code 4; it printed: out of cheese/,
    );
  });

  test(`${name}: a load error keeps its code and its words, and the host can be stopped`, async () => {
    const watched = new WatchedInstance(command, '', { hasOutputs: false });
    await assert.rejects(watched.instance.load(), {
      code: 'INVALID_ARG',
      message: 'model must have the same number of inputs and outputs',
    });
    const { pid } = watched.instance;
    assert.ok(isAlive(pid));
    await watched.instance.stop();
    assert.equal(isAlive(pid), false);
  });

  test(`${name}: executes batches, small and of many megabytes, inputs in any order`, () =>
    withInstance(async (watched) => {
      const sizes = [1, 1_000, 70_000, 1_300_000];
      for (const [i, size] of sizes.entries()) {
        const requests = [makeRequest([1, 0], size), makeRequest([0, 1], size + 3)];
        watched.instance.execute(i + 1, requests);
        const { results } = await watched.reply(i + 1);
        requests.forEach((request, r) => {
          const result = results[r]!;
          if (result instanceof StatusError) throw result;
          assert.ok(typeof result !== 'symbol');
          const { outputs } = result;
          for (const input of request.inputs) {
            const output: ReceivedOutput | undefined = outputs.find(({ index }) => index === input.index);
            assert.ok(Buffer.concat(output!.data).equals(Buffer.concat(input.data)), `size ${size}`);
            assert.deepEqual(output!.shape, input.shape);
          }
        });
      }
      assert.equal(watched.instance.inFlightCount, 0);
    }));

  test(`${name}: a running and a waiting batch can be cancelled`, () =>
    withInstance(
      async (watched) => {
        watched.instance.execute(1, [makeRequest([0, 1], 1)]);
        watched.instance.execute(2, [makeRequest([0, 1], 1)]);
        assert.equal(watched.instance.inFlightCount, 2);
        watched.instance.cancel(2, 0);
        watched.instance.cancel(1, 0);
        watched.instance.cancel(77, 0);
        for (const batchId of [1, 2]) {
          const [result] = (await watched.reply(batchId)).results;
          assert.ok(result instanceof StatusError && result.code === 'CANCELLED');
        }
      },
      { extra: SLOW },
    ));

  test(`${name}: killed, it loses its batches within a second, with the reason, and is restarted`, () =>
    withInstance(
      async (watched) => {
        const { pid } = watched.instance;
        watched.instance.execute(1, [makeRequest([0, 1], 1)]);
        watched.instance.execute(2, [makeRequest([0, 1], 1)]);
        const killedMs = performance.now();
        process.kill(pid, 'SIGKILL');
        await until(() => watched.lost.length > 0, 'the loss');
        assert.ok(performance.now() - killedMs < 1_000);
        assert.equal(watched.lost[0]?.error.code, 'UNAVAILABLE');
        assert.match(watched.lost[0]?.error.message ?? '', /host process was ended by signal SIGKILL/);
        assert.equal(watched.instance.inFlightCount, 0);
        await until(() => watched.instance.state === 'ready', 'the restart');
        assert.notEqual(watched.instance.pid, pid);
        assert.equal(watched.instance.lastError, undefined);
        assert.deepEqual(watched.states, ['ready', 'restarting', 'ready']);
      },
      { extra: SLOW },
    ));

  test(`${name}: stop leaves no process, also while a batch runs`, async () => {
    const watched = new WatchedInstance(command, SLOW);
    await watched.start();
    const { pid } = watched.instance;
    watched.instance.execute(1, [makeRequest([0, 1], 1)]);
    await watched.instance.stop();
    assert.equal(isAlive(pid), false);
    assert.equal(watched.instance.state, 'stopped');
    assert.equal(watched.lost[0]?.error.code, 'UNAVAILABLE');
  });

  test(`${name}: stop in the middle of a restart leaves no process and starts none`, async () => {
    const watched = new WatchedInstance(command);
    await watched.start();
    const { pid } = watched.instance;
    process.kill(pid, 'SIGKILL');
    // Past the first back-off of 50 ms: the new process runs but has not said hello yet.
    await until(() => watched.instance.state === 'restarting', 'the end of the first');
    await sleep(60);
    await watched.instance.stop();
    assert.deepEqual(childrenOf(process.pid), []);
    await sleep(300);
    assert.deepEqual(childrenOf(process.pid), []);
    assert.equal(watched.instance.state, 'stopped');
  });

  test(`${name}: what cannot be restarted fails, is still tried, and comes back`, async () => {
    rmSync(hostCase.flagPath, { force: true });
    await withInstance(
      async (watched) => {
        writeFileSync(hostCase.flagPath, '');
        process.kill(watched.instance.pid, 'SIGKILL');
        await until(() => watched.instance.state === 'failed', 'the state failed', 20_000);
        assert.match(watched.instance.lastError?.message ?? '', /host process exited with code 3/);
        rmSync(hostCase.flagPath);
        await until(() => watched.instance.state === 'ready', 'the return', 20_000);
        watched.instance.execute(9, [makeRequest([0, 1], 1)]);
        assert.equal((await watched.reply(9)).results.length, 1);
      },
      { command: hostCase.blockedCommand(hostCase.flagPath) },
    );
  });

  test(`${name}: it does not outlive a server that is killed`, async () => {
    const owner = fileURLToPath(new URL('./instance-owner.js', import.meta.url));
    const child = spawn(process.execPath, [owner, JSON.stringify(command)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [text] = (await once(child.stdout, 'data')) as [Buffer];
    const pid = Number(text.toString());
    assert.ok(isAlive(pid), `the host ${pid} runs`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until(() => !isAlive(pid), 'the end of the host');
  });
}

function makeRequest(order: readonly number[], count: number): SentRequest {
  const inputs = order.map((index): SentInput => {
    const data = Buffer.alloc(count * 4, `${count}-${index}-`);
    const middle = data.length >> 1;
    return {
      index,
      shape: [1, count],
      data: [data.subarray(0, middle), data.subarray(middle)],
      byteLength: data.length,
    };
  });
  return { inputs, requestedOutputs: [] };
}

async function until(isTrue: () => boolean, what: string, msMax = 5_000): Promise<void> {
  for (const endMs = performance.now() + msMax; performance.now() < endMs; await sleep(5))
    if (isTrue()) return;
  assert.fail(`no sign of ${what} within ${msMax} ms`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // An orphan that has ended stays in the table until somebody asks for it; it no longer runs.
  const path = `/proc/${pid}/stat`;
  return !existsSync(path) || !/\) Z /.test(readFileSync(path, 'utf8'));
}

/** Running children; Linux only, elsewhere none are seen. */
function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number).filter(isAlive);
}
