// `node bench/profile.mjs`: Nereid alone under perf_analyzer's load, with a CPU profile of the server process and of
// each host; prints where their time went, as one table per process. The .cpuprofile files open in any
// Chromium's developer tools.
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { prepareModels, preparePerfAnalyzer, preparePython, ROOT } from './environment.mjs';
import { formatNumber } from './ledger.mjs';
import { SETS } from './options.mjs';
import { measure, warmUp } from './perf-analyzer.mjs';
import { startNereid } from './servers.mjs';

const USAGE = `usage: node bench/profile.mjs [--set onnx] [--model mlp] [--transport http] [--concurrency 32] [--top 25]\n`;
const HOOK = fileURLToPath(new URL('profile-hook.mjs', import.meta.url));
/** V8's own names for time outside of any function; idle is left out of the shares. */
const IDLE = '(idle)';

const say = (text) => process.stderr.write(`${text}\n`);

async function main() {
  const { values } = parseArgs({
    options: {
      set: { type: 'string', default: 'onnx' },
      model: { type: 'string', default: 'mlp' },
      transport: { type: 'string', default: 'http' },
      concurrency: { type: 'string', default: '32' },
      top: { type: 'string', default: '25' },
      help: { type: 'boolean', default: false },
    },
  });
  const { set } = values;
  const model = SETS[set]?.find((candidate) => candidate.name === values.model);
  if (values.help || model === undefined) {
    process.stdout.write(USAGE);
    process.exitCode = values.help ? 0 : 1;
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'nereid-profile-'));
  const { transport } = values;
  await recordLoad({ set, model, transport, concurrency: Number(values.concurrency), folder });
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.cpuprofile'))) {
    const profile = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    process.stdout.write(`\n${join(folder, name)}\n${renderProfile(profile, Number(values.top))}\n`);
  }
}

async function recordLoad({ set, model, transport, concurrency, folder }) {
  const environment = await preparePython(say);
  const perfAnalyzer = await preparePerfAnalyzer(environment, say);
  const repositories = await prepareModels(environment, say);
  const inherited = process.env.NODE_OPTIONS ? `${process.env.NODE_OPTIONS} ` : '';
  const server = await startNereid({
    repository: repositories[set].nereid,
    logFolder: folder,
    env: {
      NEREID_PYTHON: environment.python,
      NEREID_BENCH_PROFILE_FOLDER: folder,
      NODE_OPTIONS: `${inherited}--import=${pathToFileURL(HOOK)}`,
    },
  });
  say(`load: ${model.name}, ${transport}, concurrency ${concurrency}`);
  await warmUp({ perfAnalyzer, server, model, transport });
  const result = await measure({
    perfAnalyzer,
    server,
    model,
    transport,
    concurrency,
    client: 'auto',
    workFolder: folder,
  });
  await server.stop();
  say(`${formatNumber(result.inferPerS)} infer/s with the profiler on`);
}

/** Self time per function, the largest first, as a share of the time in which the process was not idle. */
export function renderProfile({ nodes, samples, timeDeltas }, rowsMax) {
  const nodeById = new Map(nodes.map((node) => [node.id, node]));
  const selfUs = new Map();
  samples.forEach((id, i) => {
    const { functionName, url, lineNumber } = nodeById.get(id).callFrame;
    const key = `${functionName || '(anonymous)'}  ${shortenPlace(url, lineNumber)}`;
    selfUs.set(key, (selfUs.get(key) ?? 0) + timeDeltas[i]);
  });
  const idleUs = [...selfUs].reduce((sum, [key, us]) => (key.startsWith(IDLE) ? sum + us : sum), 0);
  const busyUs = [...selfUs.values()].reduce((sum, us) => sum + us, 0) - idleUs;
  const rows = [...selfUs].filter(([key]) => !key.startsWith(IDLE)).sort((a, b) => b[1] - a[1]);
  return [
    `busy ${(busyUs / 1e6).toFixed(1)} s, idle ${(idleUs / 1e6).toFixed(1)} s`,
    '   self ms   share  function',
    ...rows
      .slice(0, rowsMax)
      .map(
        ([key, us]) =>
          `${(us / 1000).toFixed(0).padStart(10)}  ${((us / busyUs) * 100).toFixed(1).padStart(5)}%  ${key}`,
      ),
  ].join('\n');
}

function shortenPlace(url, lineNumber) {
  if (url === '') return '';
  return `${url.replace(pathToFileURL(ROOT).href, '').replace(/^\//, '')}:${lineNumber + 1}`;
}

main().catch((error) => {
  process.stderr.write(`profile: ${error.stack ?? error}\n`);
  process.exit(1);
});
