// The command line of `npm run bench`, and the table of models with the load each of them gets.
// Pure: reads argv, starts nothing.
import { parseArgs } from 'node:util';

/**
 * What perf_analyzer is told per model. The small model is measured in windows of time; one request of the large
 * one may take longer than such a window, so its windows are counted in requests.
 */
const ONNX_MODELS = [
  {
    name: 'mlp',
    input: { name: 'INPUT', shape: [64] },
    warmupRequests: 3000,
    windowArgs: () => ['--measurement-mode', 'time_windows', '--measurement-interval', '2000'],
  },
  {
    name: 'convnet',
    input: { name: 'INPUT', shape: [3, 224, 224] },
    warmupRequests: 16,
    windowArgs: (concurrency) => [
      '--measurement-mode',
      'count_windows',
      '--measurement-request-count',
      String(Math.max(24, 2 * concurrency)),
    ],
  },
];

/**
 * Two models in Python, each with 64 bytes and with 600 kB, with batches and one by one. V8 compiles what large messages pass
 * through for some 4,000 of them, on threads that take two cores 1 to 4 ms each time: the 99th percentile of the first 2,000 is
 * twice that of the following ones. Both servers get as many.
 */
const PYTHON_MODELS = ['identity', 'normalize'].flatMap((kind) =>
  [16, 150_000].flatMap((values) =>
    ['', '-single'].map((suffix) => ({
      name: `${kind}-${values}${suffix}`,
      input: { name: 'INPUT', shape: [values] },
      warmupRequests: 4000,
      windowArgs: () => ['--measurement-mode', 'time_windows', '--measurement-interval', '2000'],
    })),
  ),
);

const SHORT_WINDOWS = () => ['--measurement-mode', 'time_windows', '--measurement-interval', '2000'];
const SEQUENCE_ARGS = ['--sequence-length', '20', '--sequence-id-range', '1:1000000000'];

/**
 * Sequences on the accumulator; a pipeline of one, two and four steps beside its step alone; a hit of the cache; a router,
 * which Triton does not have. Each with the concurrencies that say something about it.
 */
const SCHEDULER_MODELS = [
  ...['accumulate-direct', 'accumulate-oldest'].map((name) => ({
    name,
    input: { name: 'INPUT', shape: [1] },
    warmupRequests: 2000,
    windowArgs: SHORT_WINDOWS,
    loadArgs: SEQUENCE_ARGS,
    concurrencies: [8, 64, 512],
    isSequence: true,
  })),
  ...['step', 'chain-1', 'chain-2', 'chain-4', 'cached', 'routed'].map((name) => ({
    name,
    input: { name: 'INPUT', shape: [16] },
    warmupRequests: 3000,
    windowArgs: SHORT_WINDOWS,
    concurrencies: [1, 4],
    isOurs: name === 'routed',
  })),
];

/** What is measured together; each set has its own repositories. */
export const SETS = { onnx: ONNX_MODELS, python: PYTHON_MODELS, schedulers: SCHEDULER_MODELS };

/** Flags that both servers get for a set. */
export const SET_FLAGS = { schedulers: ['--cache-config=local,size=67108864'] };

/** How perf_analyzer talks to the servers. */
export const TRANSPORTS = {
  http: { protocol: 'http', args: [] },
  grpc: { protocol: 'grpc', args: [] },
  /** One stream per thread; perf_analyzer knows it only with asynchronous calls. */
  'grpc-stream': { protocol: 'grpc', args: ['--streaming'], isAsync: true },
  'http-shm': { protocol: 'http', args: ['--shared-memory', 'system'] },
  'grpc-shm': { protocol: 'grpc', args: ['--shared-memory', 'system'] },
};

export const USAGE = `usage: npm run bench -- [options]

  --rounds N           rounds; the order of the servers turns every round (default 5)
  --set SET            onnx, python or schedulers (default onnx)
  --only LIST          models of the set; onnx: ${nameModels(SETS.onnx)};
                       python: ${nameModels(SETS.python)};
                       schedulers: ${nameModels(SETS.schedulers)}
  --transport LIST     of ${Object.keys(TRANSPORTS).join(', ')} (default http,grpc)
  --concurrency LIST   for instance 1,4 (default 1,4,32, or what the model says)
  --client KIND        perf_analyzer's calls: sync, async or auto (default: async from 16 in flight on)
  --quick              one round of mlp, no ledger entry
  --skip-triton        Nereid alone, no ledger entry
  --no-ledger          print the table only
  --help
`;

export function parseOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      rounds: { type: 'string' },
      set: { type: 'string', default: 'onnx' },
      only: { type: 'string' },
      transport: { type: 'string', default: 'http,grpc' },
      concurrency: { type: 'string' },
      client: { type: 'string', default: 'auto' },
      quick: { type: 'boolean', default: false },
      'skip-triton': { type: 'boolean', default: false },
      'no-ledger': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const only = values.only ?? (values.quick ? 'mlp' : undefined);
  if (!Object.hasOwn(SETS, values.set)) throw new Error(`--set: no set '${values.set}'`);
  const names = only?.split(',');
  const models = SETS[values.set].filter((model) => names === undefined || names.includes(model.name));
  if (models.length === 0) throw new Error(`--only: no model named '${only}' in the set ${values.set}`);
  if (!['auto', 'sync', 'async'].includes(values.client))
    throw new Error(`--client: no kind '${values.client}'`);
  const transports = values.transport.split(',');
  const unknown = transports.find((name) => !Object.hasOwn(TRANSPORTS, name));
  if (unknown !== undefined) throw new Error(`--transport: no '${unknown}'`);
  return {
    isHelp: values.help,
    rounds: parseCount('--rounds', values.rounds ?? (values.quick ? '1' : '5')),
    set: values.set,
    models,
    transports,
    concurrencies: values.concurrency?.split(',').map((text) => parseCount('--concurrency', text)),
    client: values.client,
    hasTriton: !values['skip-triton'],
    writesLedger: !(values.quick || values['skip-triton'] || values['no-ledger']),
  };
}

/** The points of one model in this run. */
export function concurrenciesOf(options, model) {
  return options.concurrencies ?? model.concurrencies ?? [1, 4, 32];
}

function nameModels(models) {
  return models.map((model) => model.name).join(', ');
}

function parseCount(flag, text) {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new Error(`${flag}: '${text}' is not a count between 1 and 9999`);
  return Number(text);
}
