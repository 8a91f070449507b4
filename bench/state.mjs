// What it is worth that the state of a sequence stays in the host: one model twice, once as a sequence model with implicit
// state, once with the state as an ordinary input and output that the client sends back with each request.
//   node bench/state.mjs [--dist other/dist]
// One client, one request at a time over HTTP with binary tensors. Five rounds; the order of the two turns every round; the
// table shows medians per request. Every answer is checked.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { dist: { type: 'string', default: join(import.meta.dirname, '../dist') } },
});
const ROUNDS = 5;
const ROUND_MS = 600;
const START_MS_MAX = 30_000;
const SIZES = [1024, 64 * 1024, 1024 * 1024];

/** STATE_OUT = STATE_IN [K] + INPUT [1], OUTPUT = its first element. */
const MODEL =
  'CAg6xQEKIQoIU1RBVEVfSU4KBUlOUFVUEglTVEFURV9PVVQiA0FkZAovCglTVEFURV9PVVQKBWZpcnN0EgZPVVRQVVQiBkdhdGhlcioLCgRheGlzGACgAQISAWcqDggBEAc6AQBCBWZpcnN0WhMKBUlOUFVUEgoKCAgBEgQKAggBWhcKCFNUQVRFX0lOEgsKCQgBEgUKAxIBS2IUCgZPVVRQVVQSCgoICAESBAoCCAFiGAoJU1RBVEVfT1VUEgsKCQgBEgUKAxIBS0IECgAQEQ==';

const tensor = (name, count) => `{ name: "${name}" data_type: TYPE_FP32 dims: [ ${count} ] }`;

function configOf(kind, count) {
  const instances = 'instance_group [ { kind: KIND_CPU count: 1 } ]';
  if (kind === 'client') {
    return `backend: "onnxruntime" ${instances}
      input [ ${tensor('INPUT', 1)}, ${tensor('STATE_IN', count)} ]
      output [ ${tensor('OUTPUT', 1)}, ${tensor('STATE_OUT', -1)} ]`;
  }
  return `backend: "onnxruntime" ${instances}
    input [ ${tensor('INPUT', 1)} ] output [ ${tensor('OUTPUT', 1)} ]
    sequence_batching { max_sequence_idle_microseconds: 60000000 state [ {
      input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ ${count} ] } ] }`;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function startServer(repository) {
  const port = await freePort();
  const flags = ['--allow-grpc=false', '--allow-metrics=false', '--http-address=127.0.0.1'];
  const args = [join(values.dist, 'main.js'), `--model-repository=${repository}`, `--http-port=${port}`];
  const child = spawn(process.execPath, [...args, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (log += text));
  const endMs = performance.now() + START_MS_MAX;
  while (!/Started HTTPService/.test(log)) {
    if (child.exitCode !== null || performance.now() > endMs) throw new Error(`no server:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const stop = () => {
    child.kill();
    return once(child, 'exit');
  };
  return { port, stop };
}

const agent = new Agent({ keepAlive: true, maxSockets: 1, noDelay: true });

/** One inference; gives the bytes of each output by its name. */
function infer(port, model, header, tensors) {
  const json = Buffer.from(JSON.stringify(header));
  const body = Buffer.concat([json, ...tensors]);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        host: '127.0.0.1',
        agent,
        method: 'POST',
        path: `/v2/models/${model}/infer`,
        headers: { 'Inference-Header-Content-Length': json.length, 'Content-Length': body.length },
      },
      (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          if (response.statusCode !== 200) return reject(new Error(bytes.toString()));
          resolve(outputsOf(bytes, Number(response.headers['inference-header-content-length'])));
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

function outputsOf(bytes, headerBytes) {
  const { outputs } = JSON.parse(bytes.subarray(0, headerBytes).toString());
  const found = {};
  let at = headerBytes;
  for (const { name, parameters } of outputs) {
    found[name] = bytes.subarray(at, at + parameters.binary_data_size);
    at += parameters.binary_data_size;
  }
  return found;
}

function inputOf(name, data) {
  const parameters = { binary_data_size: data.length };
  return { name, datatype: 'FP32', shape: [data.length / 4], parameters };
}

const ONE = Buffer.from(Float32Array.of(1).buffer);
const outputs = (...names) => names.map((name) => ({ name, parameters: { binary_data: true } }));

/** A function that makes the next step of a sequence and gives its answer. */
function stepOf(kind, { port, model, byteLength }) {
  if (kind === 'client') {
    let state = Buffer.alloc(byteLength);
    return async () => {
      const header = { inputs: [inputOf('INPUT', ONE), inputOf('STATE_IN', state)] };
      const found = await infer(port, model, { ...header, outputs: outputs('OUTPUT', 'STATE_OUT') }, [
        ONE,
        state,
      ]);
      state = found.STATE_OUT;
      return found.OUTPUT.readFloatLE();
    };
  }
  let isStarted = false;
  return async () => {
    const parameters = { sequence_id: 1, sequence_start: !isStarted };
    isStarted = true;
    const header = { parameters, inputs: [inputOf('INPUT', ONE)], outputs: outputs('OUTPUT') };
    return (await infer(port, model, header, [ONE])).OUTPUT.readFloatLE();
  };
}

/** Microseconds per request. */
async function measure(step) {
  const times = [];
  const endMs = performance.now() + ROUND_MS;
  for (let count = 1; performance.now() < endMs; count++) {
    const startMs = performance.now();
    const answer = await step();
    times.push((performance.now() - startMs) * 1000);
    if (answer !== count) throw new Error(`answer ${answer} after ${count} steps`);
  }
  return median(times);
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
}

const repository = mkdtempSync(join(tmpdir(), 'nereid-state-bench-'));
for (const byteLength of SIZES) {
  for (const kind of ['host', 'client']) {
    const folder = join(repository, `${kind}-${byteLength}`);
    mkdirSync(join(folder, '1'), { recursive: true });
    writeFileSync(join(folder, '1', 'model.onnx'), Buffer.from(MODEL, 'base64'));
    writeFileSync(join(folder, 'config.pbtxt'), configOf(kind, byteLength / 4));
  }
}
let server;
try {
  server = await startServer(repository);
  const { port } = server;
  console.log('| state | kept in the host | sent by the client and back |');
  console.log('|---:|---:|---:|');
  for (const byteLength of SIZES) {
    const found = { host: [], client: [] };
    for (let round = 0; round <= ROUNDS; round++) {
      const kinds = round % 2 === 0 ? ['host', 'client'] : ['client', 'host'];
      for (const kind of kinds) {
        const us = await measure(stepOf(kind, { port, model: `${kind}-${byteLength}`, byteLength }));
        // The first round warms up.
        if (round > 0) found[kind].push(us);
      }
    }
    const cells = [found.host, found.client].map((us) => `${median(us).toFixed(0)} µs`);
    console.log(`| ${byteLength / 1024} KiB | ${cells.join(' | ')} |`);
  }
} finally {
  agent.destroy();
  await server?.stop();
  rmSync(repository, { recursive: true });
}
