// `npm run bench:llm`: tokens per second, time to first token and time between tokens of Nereid beside libllama alone,
// llama-server and node-llama-cpp, in one run on one machine. bench/llm/README.md says what is compared and how.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { formatNumber, readCommit } from '../ledger.mjs';
import { prepareLibrary, prepareModel, prepareNodeLlamaCpp } from './environment.mjs';
import { describeRun, renderReuse, renderTable, writeLedger } from './ledger.mjs';
import { parseOptions, USAGE } from './options.mjs';
import { hasLlamaServer, MODEL_NAME, startLlamaServer, startNereidWith } from './servers.mjs';
import { summarize } from './summary.mjs';
import { SCENARIOS } from './workload.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const REST_MS = 500;
const POINT_MS_MAX = 900_000;
const WARM_UP = { scenario: 'short', seed: 999_983, windowMs: 2000 };
/** V8 compiles what runs a few dozen times a second only after a while; a server that is up for days has that behind it. */
const NEREID_WARM_UP_MS = 12_000;
/** A server that shall be idle and takes more than this share of one core disturbs the others' measurement. */
const IDLE_SHARE_MAX = 0.05;

const run = promisify(execFile);
const startedMs = performance.now();

function say(text) {
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  process.stderr.write(`[${clock.padStart(6)}] ${text}\n`);
}

async function main() {
  const options = parseOptions(process.argv.slice(2));
  if (options.isHelp) {
    process.stdout.write(USAGE);
    return;
  }
  if (options.addFile !== undefined) {
    const row = JSON.parse(readFileSync(options.addFile, 'utf8'));
    // A copy of the tree on another machine has no history.
    writeLedger({ ...row, commit: row.commit === 'unknown' ? readCommit() : row.commit });
    return;
  }
  const library = await prepareLibrary({ library: options.library, say });
  const bench = {
    options,
    library,
    modelFile: await prepareModel({ modelFile: options.modelFile, say }),
    nodeLlamaCpp: options.systems.includes('node-llama-cpp') ? await prepareNodeLlamaCpp(say) : undefined,
    systems: options.systems.filter((system) => canRun(system, library)),
    workFolder: mkdtempSync(join(tmpdir(), 'nereid-bench-llm-')),
    samples: [],
  };
  await runRounds(bench);
  if (bench.samples.length === 0)
    throw new Error(`nothing could be measured; the logs are in ${bench.workFolder}`);
  const row = describeRun({ ...bench, points: summarize(bench.samples) });
  process.stdout.write(`\n${[...renderTable(row.points), ...renderReuse(row.points)].join('\n')}\n`);
  if (options.jsonFile !== undefined) writeFileSync(options.jsonFile, `${JSON.stringify(row)}\n`);
  if (options.writesLedger) {
    writeLedger(row);
    say('wrote bench/llm/ledger.jsonl, LEDGER.md and ledger.svg');
  }
  // Kept when something fails: the servers' logs are in it.
  rmSync(bench.workFolder, { recursive: true, force: true });
}

function canRun(system, library) {
  if (!system.startsWith('llama-server') || hasLlamaServer(library)) return true;
  say(`without ${system}: ${library.folder} has none (npm run build:libllama -- --with-server makes it)`);
  return false;
}

/**
 * Nereid stays up through all rounds, as it would in earnest; llama-server is started for each point with as many slots as
 * there are streams; the others are a process per point. Only one of them is under load at a time.
 */
async function runRounds(bench) {
  const nereid = bench.systems.includes('nereid') ? await startNereidWith(bench) : undefined;
  try {
    if (nereid !== undefined) await warmUp(nereid, { concurrency: 4, windowMs: NEREID_WARM_UP_MS });
    for (let round = 1; round <= bench.options.rounds; round++) await runRound(bench, { round, nereid });
  } finally {
    await nereid?.stop();
  }
}

async function runRound(bench, { round, nereid }) {
  const { options, systems } = bench;
  for (const [i, point] of options.points.entries()) {
    const turned = systems.map((_, j) => systems[(j + round - 1) % systems.length]);
    for (const system of turned) {
      await sleep(REST_MS);
      const seed = 100_003 * round + 1009 * i;
      await measurePoint(bench, { round, system, nereid, point: { ...point, seed } });
    }
  }
}

async function measurePoint(bench, { round, system, nereid, point }) {
  const { options, samples } = bench;
  const cpuBefore = nereid?.readCpuMs();
  const beganMs = performance.now();
  const result = await measureTwice(bench, { system, nereid, point });
  const tookMs = performance.now() - beganMs;
  if (result === undefined) return;
  samples.push({ round, system, scenario: point.scenario, concurrency: point.concurrency, ...result });
  const total = options.rounds * options.points.length * bench.systems.length;
  const leftMs = ((performance.now() - startedMs) / samples.length) * (total - samples.length);
  say(
    `${samples.length}/${total}, about ${Math.ceil(leftMs / 60_000)} min left: round ${round}, ${point.scenario}, ` +
      `${point.concurrency} streams, ${system}: ${formatNumber(result.tokensPerS)} tok/s, ` +
      `TTFT p50 ${formatNumber(result.ttftP50Ms)} ms, p99 ${formatNumber(result.ttftP99Ms)} ms, ` +
      `between tokens p99 ${formatNumber(result.gapP99Ms)} ms, client ${(100 * result.clientShare).toFixed(1)} % of a core`,
  );
  if (nereid === undefined || system === 'nereid') return;
  const share = (nereid.readCpuMs() - cpuBefore) / tookMs;
  if (share > IDLE_SHARE_MAX) {
    say(`warning: nereid, which shall be idle, took ${(share * 100).toFixed(0)} % of a core`);
  }
}

/** One bad moment of the machine must not cost an hour of measurements; a point without numbers is left out. */
async function measureTwice(bench, request) {
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      return await measure(bench, request);
    } catch (error) {
      const { scenario, concurrency } = request.point;
      say(
        `${request.system}, ${scenario}, ${concurrency} streams, attempt ${attempt} failed: ${error.message}`,
      );
    }
  }
  return undefined;
}

async function measure(bench, { system, nereid, point }) {
  const { options, library, modelFile } = bench;
  const common = { ...point, windowMs: options.windowMs * SCENARIOS[point.scenario].windowFactor };
  if (system === 'nereid') return loadHttp(nereid, common);
  if (system.startsWith('llama-server')) {
    const server = await startLlamaServer({ ...bench, system, point });
    try {
      await warmUp(server, { concurrency: Math.min(4, point.concurrency) });
      return await loadHttp(server, common);
    } finally {
      await server.stop();
    }
  }
  const engine = { ...common, modelFile, threads: options.threads, gpuLayers: options.gpuLayers };
  if (system === 'node-llama-cpp') {
    return runLoad('node-llama-cpp-load.mjs', { ...engine, packageFolder: bench.nodeLlamaCpp });
  }
  return runLoad('limit.mjs', {
    ...engine,
    library: library.folder,
    isUnified: system !== 'libllama-split',
    samplesOnDevice: system === 'libllama-device',
    isMapped: system !== 'libllama-pages',
  });
}

/** The first answers of a fresh process are slower: code is compiled, memory is touched for the first time. */
async function warmUp(server, how) {
  try {
    await loadHttp(server, { ...WARM_UP, ...how });
  } catch (error) {
    // A server that cannot answer is reported by the measurement itself.
    say(`warm-up of ${server.name}: ${error.message}`);
  }
}

function loadHttp(server, point) {
  return runLoad('http-load.mjs', { ...point, port: server.port, model: MODEL_NAME });
}

async function runLoad(name, point) {
  const { stdout, stderr } = await run(process.execPath, [join(HERE, name), JSON.stringify(point)], {
    timeout: POINT_MS_MAX,
    env:
      point.isMapped === false ? { ...process.env, GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1' } : process.env,
  });
  const line = stdout.trim().split('\n').at(-1);
  if (!line?.startsWith('{')) throw new Error(`${name} said nothing: ${stderr.slice(-2000)}`);
  return JSON.parse(line);
}

main().catch((error) => {
  process.stderr.write(`bench: ${error.stack ?? error}\n`);
  process.exit(1);
});
