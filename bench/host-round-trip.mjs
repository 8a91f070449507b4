// What one trip to a host costs, without a front end: an EXECUTE frame to the host process of an identity model and its
// RESPONSE back, one at a time. The number to watch when the host protocol, the Python host or the node host change.
//   NEREID_PYTHON=/path/with/numpy/python node bench/host-round-trip.mjs [--dist other/dist …]
// Several builds are measured in turns, round by round; the table shows medians and 99th percentiles of all rounds.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    dist: { type: 'string', multiple: true, default: [join(import.meta.dirname, '../dist')] },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string' },
  },
});
const ROUNDS = Number(values.rounds);
const ROUND_MS = 700;
const SIZES = [64, 64 * 1024, 600_000, 4 * 1024 * 1024, 16 * 1024 * 1024];

const PYTHON_MODEL = `import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT", pb_utils.get_input_tensor_by_name(r, "INPUT").as_numpy())])
                for r in requests]
`;
const INFO = Buffer.from('{"id":"","correlationId":0,"flags":0,"priority":0,"timeoutUs":0,"parameters":{}}');

const folder = mkdtempSync(join(tmpdir(), 'nereid-trip-'));
mkdirSync(join(folder, '1'));
writeFileSync(join(folder, '1/model.py'), PYTHON_MODEL);

const config = (backend) => ({
  name: 'trip',
  backend,
  platform: '',
  max_batch_size: 0,
  default_model_filename: 'model.py',
  input: [{ name: 'INPUT', data_type: 'TYPE_UINT8', dims: [-1] }],
  output: [{ name: 'OUTPUT', data_type: 'TYPE_UINT8', dims: [-1] }],
  parameters: {},
  instance_group: [],
});

async function start(dist, backend) {
  const load = (file) => import(pathToFileURL(join(resolve(dist), file)));
  const { Instance } = await load('instance/instance.js');
  const command =
    backend === 'python'
      ? {
          file: process.env.NEREID_PYTHON ?? 'python3',
          args: [join(resolve(dist), '../python/nereid_host/__main__.py')],
        }
      : { file: process.execPath, args: [join(resolve(dist), 'host.js')] };
  let onReply = () => {};
  const nothing = () => {};
  const instance = new Instance({
    command,
    load: {
      backend,
      modelName: 'trip',
      version: 1,
      modelDirectory: folder,
      versionDirectory: join(folder, '1'),
      config: config(backend),
      isAutoComplete: false,
      backendConfig: {},
      placement: { name: 'trip_0', kind: 'KIND_CPU', gpus: [], profile: [] },
    },
    events: {
      onReply: (_instance, reply) => onReply(reply),
      onPart: nothing,
      onCall: nothing,
      onCallCancel: nothing,
      onCallFlow: nothing,
      onRequestCancelled: nothing,
      onLost: (_instance, error) => console.error(error.message),
      onStateChange: nothing,
      onLog: (_instance, _level, message) => console.error(message),
    },
  });
  await instance.start(await instance.load(), []);
  let batchId = 0;
  return {
    dist,
    backend,
    async trip(data) {
      const inputs = [{ index: 0, shape: [data.length], data: [data], byteLength: data.length }];
      const reply = await new Promise((settle) => {
        onReply = settle;
        instance.execute(++batchId, [{ inputs, requestedOutputs: [], info: INFO }]);
      });
      return reply.results[0];
    },
    stop: () => instance.stop(),
  };
}

async function measure(host, size) {
  const data = Buffer.alloc(size, 7);
  const result = await host.trip(data);
  if (result.outputs === undefined) throw result;
  const bytes = Buffer.concat(result.outputs[0].data);
  if (!bytes.equals(data)) throw new Error(`${host.backend}: the answer is not the question`);
  for (let i = 0; i < 50; i++) await host.trip(data);
  const times = [];
  const endMs = performance.now() + ROUND_MS;
  for (let nowMs = performance.now(); nowMs < endMs; ) {
    await host.trip(data);
    const afterMs = performance.now();
    times.push((afterMs - nowMs) * 1000);
    nowMs = afterMs;
  }
  return times;
}

const percentile = (times, part) => times.sort((a, b) => a - b)[Math.floor(times.length * part)];

try {
  const rows = [];
  for (const backend of ['python', 'identity']) {
    if (values.only !== undefined && values.only !== backend) continue;
    const hosts = await Promise.all(values.dist.map((dist) => start(dist, backend)));
    for (const size of SIZES) {
      const all = hosts.map(() => []);
      for (let round = 0; round < ROUNDS; round++) {
        for (const [i, host] of hosts.entries()) all[i].push(...(await measure(host, size)));
      }
      for (const [i, host] of hosts.entries()) {
        const us = (part) => Math.round(percentile(all[i], part));
        rows.push({
          backend,
          bytes: size,
          build: host.dist,
          'median µs': us(0.5),
          'p99 µs': us(0.99),
          trips: all[i].length,
        });
      }
    }
    await Promise.all(hosts.map((host) => host.stop()));
  }
  console.table(rows);
} finally {
  rmSync(folder, { recursive: true });
}
