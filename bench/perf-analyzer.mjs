// One run of NVIDIA's perf_analyzer against one server: builds its arguments, reads its report.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { TRANSPORTS } from './options.mjs';

/** Percent between the three last windows; wide, because the medians of several rounds do the smoothing. */
const STABILITY_PERCENT = 30;
const ANY_PERCENT = 100_000;
const TRIALS_MAX = 8;
const RUN_MS_MAX = 120_000;
const WARMUP_CONCURRENCY = 4;
/**
 * The synchronous client has a thread per request in flight. With more of them than cores its main thread can get too
 * little time to keep up with the records of finished requests: they pile up, and a run of 8 s may not end in minutes.
 * From here on two threads drive all requests.
 */
const ASYNC_CONCURRENCY_MIN = 16;
const ASYNC_ARGS = ['--async', '--max-threads', '2'];

/** Sends load until just-in-time compilers, allocators and connections are past their start: a window of at least so many requests. */
export async function warmUp({ perfAnalyzer, server, model, transport }) {
  await runPerfAnalyzer(perfAnalyzer, [
    ...baseArgs({ server, model, transport, concurrency: WARMUP_CONCURRENCY }),
    ...(TRANSPORTS[transport].isAsync ? ASYNC_ARGS : []),
    ...['--measurement-mode', 'count_windows', '--measurement-request-count', String(model.warmupRequests)],
    ...['--max-trials', '1'],
  ]);
}

/**
 * { inferPerS, p50Us, p95Us, p99Us, isStable }. perf_analyzer reports nothing when its windows do not agree or it does
 * not come to an end; the point is then measured once more with any windows accepted, and marked.
 */
export async function measure(point) {
  const stable = await measureOnce({ ...point, stabilityPercent: STABILITY_PERCENT });
  if (stable !== undefined) return { ...stable, isStable: true };
  const unstable = await measureOnce({ ...point, stabilityPercent: ANY_PERCENT });
  if (unstable === undefined) throw new Error(`perf_analyzer finds no measurement for ${point.model.name}`);
  return { ...unstable, isStable: false };
}

async function measureOnce({ stabilityPercent, ...point }) {
  const { perfAnalyzer, model, concurrency, workFolder } = point;
  const csv = join(workFolder, 'perf.csv');
  rmSync(csv, { force: true });
  await runPerfAnalyzer(perfAnalyzer, [
    ...baseArgs(point),
    ...clientArgs(point),
    ...model.windowArgs(concurrency),
    ...['-s', String(stabilityPercent), '--max-trials', String(TRIALS_MAX), '-f', csv],
  ]);
  return existsSync(csv) ? parseReport(readFileSync(csv, 'utf8')) : undefined;
}

function baseArgs({ server, model, transport, concurrency }) {
  const { protocol, args } = TRANSPORTS[transport];
  const url = protocol === 'grpc' ? server.grpcUrl : server.url;
  const load = ['--concurrency-range', String(concurrency), ...args, ...(model.loadArgs ?? [])];
  return ['-m', model.name, '-u', url, '-i', protocol, ...load];
}

function clientArgs({ client, concurrency, transport }) {
  const isMany = client === 'auto' && concurrency >= ASYNC_CONCURRENCY_MIN;
  const isAsync = client === 'async' || isMany || TRANSPORTS[transport].isAsync;
  return isAsync ? ASYNC_ARGS : ['--sync'];
}

/** The report is one header line and one line per concurrency. */
export function parseReport(text) {
  const [header, line] = text.trim().split('\n');
  if (line === undefined) throw new Error(`perf_analyzer wrote no measurement:\n${text}`);
  const values = line.split(',');
  const read = (column) => {
    const value = Number(values[header.split(',').indexOf(column)]);
    if (!Number.isFinite(value)) throw new Error(`perf_analyzer's report has no '${column}':\n${text}`);
    return value;
  };
  return {
    inferPerS: read('Inferences/Second'),
    p50Us: read('p50 latency'),
    p95Us: read('p95 latency'),
    p99Us: read('p99 latency'),
  };
}

function runPerfAnalyzer({ file, libraries }, args) {
  const path = [libraries, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      env: { ...process.env, LD_LIBRARY_PATH: path },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS_MAX,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('error', reject);
    child.on('close', (code, signal) => {
      // Windows that do not agree and a run past its time leave no report; everything else is a failure.
      if (code === 0 || signal === 'SIGTERM' || /failed to obtain stable measurement/i.test(output))
        resolve(output);
      else
        reject(
          new Error(`perf_analyzer ${args.join(' ')}: ${signal ?? `exit ${code}`}\n${output.slice(-2000)}`),
        );
    });
  });
}
