// One running server of the bench, Nereid or the real Triton: start, wait until ready, stop, CPU time used. A server
// leads its own session, so that its hosts and stubs are counted and ended with it.
import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from './environment.mjs';

const READY_MS_MAX = 120_000;
const STOP_MS_MAX = 20_000;
/** Linux counts CPU time in hundredths of a second, whatever the kernel's own tick is. */
const TICK_MS = 10;

const running = new Set();
process.on('exit', () => {
  for (const server of running) server.kill();
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

export class BenchServer {
  #child;
  #exit;
  #logFile;
  #readyPath;

  constructor({ name, child, port, grpcPort, logFile, readyPath }) {
    this.name = name;
    this.#readyPath = readyPath;
    this.port = port;
    this.grpcPort = grpcPort;
    this.#child = child;
    this.#logFile = logFile;
    this.#exit = new Promise((resolve) => {
      child.once('exit', resolve);
      // A binary that cannot be started tells why here, and never exits.
      child.once('error', resolve);
    });
  }

  /** A server that takes other flags than Triton's names its own, and where it says that it is ready. */
  static async start({ name, file, args, env, logFolder, listenersOf = tritonListeners, readyPath }) {
    const [port, grpcPort, metricsPort] = await findFreePorts(3);
    const logFile = join(logFolder, `${name}.log`);
    const log = openSync(logFile, 'w');
    const child = spawn(file, [...args, ...listenersOf({ port, grpcPort, metricsPort })], {
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log],
      detached: true,
      cwd: ROOT,
    });
    closeSync(log);
    const server = new BenchServer({ name, child, port, grpcPort, logFile, readyPath });
    running.add(server);
    await server.#waitReady();
    return server;
  }

  get url() {
    return `127.0.0.1:${this.port}`;
  }

  get grpcUrl() {
    return `127.0.0.1:${this.grpcPort}`;
  }

  async #waitReady() {
    const deadlineMs = performance.now() + READY_MS_MAX;
    let hasExited = false;
    this.#exit.then(() => {
      hasExited = true;
    });
    while (!(await this.#isReady())) {
      if (hasExited || performance.now() > deadlineMs) {
        const tail = readFileSync(this.#logFile, 'utf8').split('\n').slice(-20).join('\n');
        throw new Error(`${this.name} is not ready; the end of ${this.#logFile}:\n${tail}`);
      }
      await sleep(100);
    }
  }

  async #isReady() {
    try {
      return (await fetch(`http://${this.url}${this.#readyPath ?? '/v2/health/ready'}`)).ok;
    } catch {
      // Not listening yet.
      return false;
    }
  }

  async stop() {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.kill(), STOP_MS_MAX);
    await this.#exit;
    clearTimeout(timer);
    running.delete(this);
  }

  /** Ends the whole session at once. */
  kill() {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
  }

  /** CPU milliseconds of the server and everything that it has started; undefined where there is no /proc. */
  readCpuMs() {
    if (process.platform !== 'linux') return undefined;
    let ticks = 0;
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const fields = readStatFields(pid);
      if (fields !== undefined && Number(fields[3]) === this.#child.pid) {
        ticks += Number(fields[11]) + Number(fields[12]);
      }
    }
    return ticks * TICK_MS;
  }
}

function tritonListeners({ port, grpcPort, metricsPort }) {
  return [
    '--http-address=127.0.0.1',
    `--http-port=${port}`,
    `--metrics-port=${metricsPort}`,
    '--grpc-address=127.0.0.1',
    `--grpc-port=${grpcPort}`,
  ];
}

/** Fields of /proc/PID/stat after the command, which may itself hold spaces: [3] session, [11] user, [12] system. */
function readStatFields(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    // The process ended between the listing and the read.
    return undefined;
  }
}

function findFreePorts(count) {
  return Promise.all(Array.from({ length: count }, findFreePort));
}

function findFreePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export function startNereid({ repository, logFolder, env = {}, nodeArgs = [], flags = [] }) {
  const args = [...nodeArgs, join(ROOT, 'bin', 'nereid.js'), `--model-repository=${repository}`, ...flags];
  return BenchServer.start({ name: 'nereid', file: process.execPath, args, env, logFolder });
}

export function startTriton({ repository, logFolder, triton, flags = [] }) {
  const args = [`--model-repository=${repository}`, ...triton.args, ...flags];
  return BenchServer.start({ name: 'triton', file: triton.binary, args, env: triton.env, logFolder });
}
