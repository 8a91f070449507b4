// `npm run bench`: measures Nereid beside the real Triton in one run, prints a table and writes the ledger.
// bench/README.md says what is compared and why it is fair.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkAnswers } from './check-answers.mjs';
import { prepareModels, preparePerfAnalyzer, preparePython, prepareTriton } from './environment.mjs';
import { describeRun, formatNumber, renderTable, writeLedger } from './ledger.mjs';
import { concurrenciesOf, parseOptions, SET_FLAGS, USAGE } from './options.mjs';
import { measure, warmUp } from './perf-analyzer.mjs';
import { startNereid, startTriton } from './servers.mjs';
import { summarize } from './summary.mjs';

/** After a load stops, threads of ONNX Runtime may spin and garbage be collected for a moment. */
const REST_MS = 500;
/** A server that shall be idle and takes more than this share of one core disturbs the other's measurement. */
const IDLE_SHARE_MAX = 0.05;

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
  const environment = await preparePython(say);
  const bench = {
    options,
    environment,
    perfAnalyzer: await preparePerfAnalyzer(environment, say),
    triton: options.hasTriton ? prepareTriton(environment) : undefined,
    repositories: await prepareModels(environment, say),
    workFolder: mkdtempSync(join(tmpdir(), 'nereid-bench-')),
    samples: [],
  };
  for (let round = 1; round <= options.rounds; round++) await runRound(bench, round);
  const points = summarize(bench.samples);
  process.stdout.write(`\n${renderTable(points).join('\n')}\n`);
  if (options.writesLedger) {
    writeLedger(describeRun({ options, environment, points }));
    say('wrote bench/ledger.jsonl, bench/LEDGER.md and the picture of this set');
  }
  // Kept when something fails: the servers' logs are in it.
  rmSync(bench.workFolder, { recursive: true, force: true });
}

/**
 * Both servers are started anew for each round, so that no round inherits the luck of another's memory layout or
 * compiled code; both run through the round, so that the two halves of a pair are seconds apart.
 */
async function runRound(bench, round) {
  const { options, perfAnalyzer } = bench;
  const servers = await startServers(bench, round);
  try {
    for (const model of options.models) {
      const serving = servers.filter((server) => server.name === 'nereid' || !model.isOurs);
      if (!model.isSequence) await checkAnswers({ servers: serving, model });
      for (const transport of options.transports) {
        for (const server of serving) await warmUp({ perfAnalyzer, server, model, transport });
        for (const concurrency of concurrenciesOf(options, model)) {
          for (const server of serving) {
            await sleep(REST_MS);
            await measurePoint(bench, { round, model, transport, concurrency, server, servers });
          }
        }
      }
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** In the order of measuring, which turns every round. */
async function startServers({ options, environment, repositories, triton, workFolder: logFolder }, round) {
  const { nereid, triton: ofTriton } = repositories[options.set];
  // Both sides run models in Python with the same interpreter and the same numpy.
  const env = { NEREID_PYTHON: environment.python };
  const flags = SET_FLAGS[options.set] ?? [];
  const servers = [await startNereid({ repository: nereid, logFolder, env, flags })];
  if (options.hasTriton) {
    servers.push(await startTriton({ repository: ofTriton, logFolder, triton, flags }));
    const metadata = await (await fetch(`http://${servers[1].url}/v2`)).json();
    environment.tritonVersion = metadata.version;
  }
  return round % 2 === 1 ? servers : servers.reverse();
}

async function measurePoint(bench, { round, model, transport, concurrency, server, servers }) {
  const { options, perfAnalyzer, workFolder, samples } = bench;
  const others = servers.filter((other) => other !== server);
  const before = others.map((other) => other.readCpuMs());
  const beganMs = performance.now();
  const result = await measure({
    perfAnalyzer,
    server,
    model,
    transport,
    concurrency,
    client: options.client,
    workFolder,
  });
  const tookMs = performance.now() - beganMs;
  samples.push({ round, model: model.name, transport, concurrency, server: server.name, ...result });

  const { rounds, models, transports } = options;
  const pointCount = models.reduce(
    (sum, one) => sum + concurrenciesOf(options, one).length * (one.isOurs ? 1 : servers.length),
    0,
  );
  const total = rounds * transports.length * pointCount;
  const left = ((performance.now() - startedMs) / samples.length) * (total - samples.length);
  say(
    `${samples.length}/${total}, about ${Math.ceil(left / 60_000)} min left: round ${round}, ${model.name}, ${transport}, ` +
      `concurrency ${concurrency}, ${server.name}: ${formatNumber(result.inferPerS)} infer/s, ` +
      `p50 ${formatNumber(result.p50Us / 1000)} ms, p99 ${formatNumber(result.p99Us / 1000)} ms` +
      `${result.isStable ? '' : ' (unstable)'}`,
  );
  others.forEach((other, i) => {
    const share = (other.readCpuMs() - before[i]) / tookMs;
    if (share > IDLE_SHARE_MAX) {
      say(`warning: ${other.name}, which shall be idle, took ${(share * 100).toFixed(0)} % of a core`);
    }
  });
}

main().catch((error) => {
  process.stderr.write(`bench: ${error.stack ?? error}\n`);
  process.exit(1);
});
