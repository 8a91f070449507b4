// A real Redis or Valkey server for one test, in memory only, on a port of its own. Without the program the tests are skipped.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const START_MS_MAX = 10_000;

const program = ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0);

/** Pass as node:test's `skip` option. */
export const redisSkip: string | false =
  program === undefined ? 'needs redis-server or valkey-server (apt-get install redis-server)' : false;

export interface RunningRedis {
  readonly port: number;
  /** SIGSTOP makes it hang, SIGCONT goes on. */
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/** `args` are settings as the program takes them: `--requirepass`, `secret`. */
export async function startRedis(port: number, args: readonly string[] = []): Promise<RunningRedis> {
  const listen = args.includes('--tls-port') ? [] : ['--port', String(port)];
  const memory = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', '/'];
  const child = spawn(program!, [...listen, ...memory, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const killNow = () => child.kill('SIGKILL');
  process.once('exit', killNow);
  child.once('close', () => process.off('exit', killNow));
  for (const end = Date.now() + START_MS_MAX; !(await isListening(port)); await sleep(20)) {
    if (Date.now() < end && child.exitCode === null) continue;
    killNow();
    throw new Error(`${program} did not start\n${output}`);
  }
  return { port, signal: (signal) => void child.kill(signal), stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  socket.destroy();
  return isOpen;
}
