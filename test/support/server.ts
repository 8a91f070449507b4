// Starts the built server (bin/nereid.js) as a user would and waits until it serves. Every end-to-end
// test goes through here; a start that fails or takes too long throws with the server's whole log.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from './paths.ts';

/** Nine networks of the test suite load one after another; a slow machine needs a while for the first. */
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 15_000;
const READY_LINE = /Started HTTPService at \S+:\d+/;

interface Ports {
  readonly http: number;
  readonly metrics: number;
  readonly grpc: number;
}

export interface ServerOptions {
  /** Model repositories, one or several. */
  readonly repository: string | readonly string[];
  /** More flags, as a user would write them. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Serves gRPC too. */
  readonly isGrpc?: boolean;
  readonly startMsMax?: number;
  /** Another server with the same flags and the same ready line: the real Triton. Nereid unless told. */
  readonly program?: { readonly file: string; readonly args: readonly string[] };
}

export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningServer {
  /** "127.0.0.1:port", as clients want it. */
  readonly httpAddress: string;
  /** Nothing listens there without `isGrpc`. */
  readonly grpcAddress: string;
  readonly grpcPort: number;
  readonly metricsAddress: string;
  readonly httpUrl: string;
  readonly metricsUrl: string;
  readonly pid: number;
  readonly exited: Promise<ServerExit>;
  logs(): string;
  /** Resolves with true as soon as the log matches, with false after the time given. */
  waitForLog(pattern: RegExp, msMax?: number): Promise<boolean>;
  /** Sends the signal (SIGTERM unless told), waits for the end, kills after 15 s. */
  stop(signal?: NodeJS.Signals): Promise<ServerExit>;
}

export async function freePorts(count: number): Promise<number[]> {
  // All are held open until the last is known, so that no port is handed out twice.
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(async (server) => {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      return address.port;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const [http, metrics, grpc] = (await freePorts(3)) as [number, number, number];
  const grpcArgs = ['--grpc-address=127.0.0.1', `--grpc-port=${grpc}`];
  const repositories = typeof options.repository === 'string' ? [options.repository] : options.repository;
  // A Triton that dies leaves its stubs behind, which hold its output open; as a group they are ended together.
  const isGroup = options.program !== undefined;
  const program = options.program ?? { file: process.execPath, args: [MAIN] };
  const args = [
    ...program.args,
    ...repositories.map((path) => `--model-repository=${path}`),
    '--http-address=127.0.0.1',
    `--http-port=${http}`,
    '--metrics-address=127.0.0.1',
    `--metrics-port=${metrics}`,
    ...(options.isGrpc ? grpcArgs : ['--allow-grpc=false']),
    ...(options.args ?? []),
  ];
  const child = spawn(program.file, args, {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: isGroup,
  });
  const server = watch(child, { http, metrics, grpc }, isGroup);
  const startMsMax = options.startMsMax ?? START_MS_MAX;
  const isReady = await Promise.race([
    server.waitForLog(READY_LINE, startMsMax).then((found) => found && canConnect(metrics, 5_000)),
    server.exited.then(() => false),
  ]);
  if (!isReady) {
    const exit = child.exitCode ?? child.signalCode;
    await server.stop('SIGKILL');
    const what =
      exit === null ? `was not ready after ${startMsMax} ms` : `ended with ${exit} before it was ready`;
    throw new Error(`the server ${what}\n  ${program.file} ${args.join(' ')}\n${server.logs()}`);
  }
  return server;
}

function watch(child: ChildProcess, ports: Ports, isGroup: boolean): RunningServer {
  const chunks: string[] = [];
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      chunks.push(text);
      for (const listener of listeners) listener();
    });
  }
  const logs = () => chunks.join('');
  const exited = new Promise<ServerExit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
    child.once('error', (error) => {
      chunks.push(`${error.message}\n`);
      resolve({ code: null, signal: null });
    });
  });
  // A test that dies must not leave a server behind.
  const killNow = () => (isGroup ? killGroup(child) : child.kill('SIGKILL'));
  process.once('exit', killNow);
  void exited.then(() => process.off('exit', killNow));

  return {
    httpAddress: `127.0.0.1:${ports.http}`,
    grpcAddress: `127.0.0.1:${ports.grpc}`,
    grpcPort: ports.grpc,
    metricsAddress: `127.0.0.1:${ports.metrics}`,
    httpUrl: `http://127.0.0.1:${ports.http}`,
    metricsUrl: `http://127.0.0.1:${ports.metrics}/metrics`,
    pid: child.pid ?? -1,
    exited,
    logs,
    waitForLog: (pattern, msMax = 10_000) =>
      new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), msMax);
        const finish = (found: boolean) => {
          clearTimeout(timer);
          listeners.delete(check);
          resolve(found);
        };
        const check = () => {
          if (pattern.test(logs())) finish(true);
        };
        listeners.add(check);
        void exited.then(() => finish(pattern.test(logs())));
        check();
      }),
    stop: async (signal = 'SIGTERM') => {
      if (isGroup && signal === 'SIGKILL') killNow();
      else if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      const timer = setTimeout(killNow, STOP_MS_MAX);
      const exit = await exited;
      clearTimeout(timer);
      return exit;
    },
  };
}

function killGroup(leader: ChildProcess): void {
  if (leader.pid === undefined) return;
  try {
    process.kill(-leader.pid, 'SIGKILL');
  } catch {
    // All of it has gone already.
  }
}

async function canConnect(port: number, msMax: number): Promise<boolean> {
  for (const end = Date.now() + msMax; Date.now() < end; await sleep(50)) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return true;
  }
  return false;
}
