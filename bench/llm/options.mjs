// The command line of `npm run bench:llm`. Pure: reads argv, starts nothing.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { SCENARIOS } from './workload.mjs';

/**
 * libllama is the limit, with one cache for all sequences; -split gives every sequence its own part of the cache; -device
 * samples on the device; -pages has the weights in memory of its own, in pages of 2 MB, as Nereid has them. The servers' -split and -device mean the same.
 */
export const SYSTEMS = [
  'libllama',
  'libllama-split',
  'libllama-device',
  'libllama-pages',
  'nereid',
  'llama-server',
  'llama-server-split',
  'llama-server-device',
  'node-llama-cpp',
];
const DEFAULT_SYSTEMS = ['libllama', 'nereid', 'llama-server'];

export const USAGE = `usage: npm run bench:llm -- [options]

  --rounds N           rounds; the order of the systems turns every round (default 3)
  --only LIST          of ${SYSTEMS.join(', ')}
                       (default ${DEFAULT_SYSTEMS.join(', ')})
  --with LIST          these beside the default
  --scenario LIST      of ${Object.keys(SCENARIOS).join(', ')} (default all)
  --concurrency LIST   streams at once (default 1,4,16,64, and 4 for unique)
  --seconds N          length of the window of a point (default 10; four times that for unique)
  --library WHICH      prebuilt: the npm package; native: what npm run build:libllama made; or a directory
                       (default prebuilt, which has no llama-server)
  --threads N          of every system (default: every core)
  --gpu-layers N       on the GPU, for every system (default 0)
  --model FILE         another GGUF than SmolLM2-135M-Instruct
  --quick              one round of short at 1 and 4, windows of 3 s, no ledger entry
  --no-ledger          print the table only
  --json FILE          write the run here, for --add
  --add FILE           put a run from another machine into the ledger; measures nothing
  --help
`;

export function parseOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      rounds: { type: 'string' },
      only: { type: 'string' },
      with: { type: 'string' },
      scenario: { type: 'string' },
      concurrency: { type: 'string' },
      seconds: { type: 'string' },
      library: { type: 'string', default: 'prebuilt' },
      threads: { type: 'string', default: String(availableParallelism()) },
      'gpu-layers': { type: 'string', default: '0' },
      model: { type: 'string' },
      quick: { type: 'boolean', default: false },
      'no-ledger': { type: 'boolean', default: false },
      json: { type: 'string' },
      add: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const { quick } = values;
  const systems = [
    ...new Set([...(values.only?.split(',') ?? DEFAULT_SYSTEMS), ...(values.with?.split(',') ?? [])]),
  ];
  checkNames('--only and --with', systems, SYSTEMS);
  const scenarios = (values.scenario ?? (quick ? 'short' : Object.keys(SCENARIOS).join(','))).split(',');
  checkNames('--scenario', scenarios, Object.keys(SCENARIOS));
  const concurrency = values.concurrency ?? (quick ? '1,4' : undefined);
  const concurrencies = concurrency?.split(',').map((text) => parseCount('--concurrency', text));
  return {
    isHelp: values.help,
    rounds: parseCount('--rounds', values.rounds ?? (quick ? '1' : '3')),
    systems,
    points: scenarios.flatMap((scenario) =>
      (concurrencies ?? SCENARIOS[scenario].concurrencies).map((one) => ({ scenario, concurrency: one })),
    ),
    windowMs: 1000 * parseCount('--seconds', values.seconds ?? (quick ? '3' : '10')),
    library: values.library,
    threads: parseCount('--threads', values.threads),
    gpuLayers: values['gpu-layers'] === '0' ? 0 : parseCount('--gpu-layers', values['gpu-layers']),
    modelFile: values.model,
    writesLedger: !(quick || values['no-ledger']),
    jsonFile: values.json,
    addFile: values.add,
  };
}

function checkNames(flag, names, known) {
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`${flag}: no '${unknown}' among ${known.join(', ')}`);
}

function parseCount(flag, text) {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${flag}: '${text}' is not a count between 1 and 9999`);
  return Number(text);
}
