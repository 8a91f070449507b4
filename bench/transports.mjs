// `node bench/transports.mjs`: the same canned gRPC answers over three transports (ours on a socket, node:http2, grpc-js),
// loaded by the real perf_analyzer, in turn, medians. The evidence of docs/adr/0006. Synchronous calls only: the
// asynchronous client wants its request id back, which an answer known by heart has not.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, credentials } from '@grpc/grpc-js';
import { prepareModels, preparePerfAnalyzer, preparePython } from './environment.mjs';
import { formatNumber } from './ledger.mjs';
import { SETS } from './options.mjs';
import { measure, warmUp } from './perf-analyzer.mjs';
import { startNereid } from './servers.mjs';
import { median } from './summary.mjs';

const KINDS = ['own', 'http2', 'grpc-js'];
const SERVICE = '/inference.GRPCInferenceService/';
/** What perf_analyzer asks before and while it loads a server. */
const SMALL_RPCS = [
  'ServerLive',
  'ServerReady',
  'ServerMetadata',
  'ModelReady',
  'ModelMetadata',
  'ModelConfig',
];

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, concurrency: { type: 'string', default: '1,4,8' } },
});
const say = (text) => process.stderr.write(`${text}\n`);

const [model] = SETS.onnx;
const environment = await preparePython(say);
const perfAnalyzer = await preparePerfAnalyzer(environment, say);
const repositories = await prepareModels(environment, say);
const workFolder = mkdtempSync(join(tmpdir(), 'nereid-transports-'));
const file = await recordAnswers();
const samples = new Map();
for (let round = 0; round < Number(values.rounds); round++) {
  for (let i = 0; i < KINDS.length; i++) await measureKind(KINDS[(i + round) % KINDS.length]);
}
console.log('| in flight | ' + KINDS.map((kind) => `${kind} infer/s (p50 ms)`).join(' | ') + ' |');
console.log(`|---:|${'---:|'.repeat(KINDS.length)}`);
for (const concurrency of values.concurrency.split(',')) {
  const cells = KINDS.map((kind) => {
    const points = samples.get(`${kind} ${concurrency}`);
    const rate = median(points.map((point) => point.inferPerS));
    const p50Us = median(points.map((point) => point.p50Us));
    return `${formatNumber(rate)} (${formatNumber(p50Us / 1000)})`;
  });
  console.log(`| ${concurrency} | ${cells.join(' | ')} |`);
}
rmSync(workFolder, { recursive: true });
process.exit(0);

/** The answers of a real server to the questions of perf_analyzer, as bytes. */
async function recordAnswers() {
  const server = await startNereid({ repository: repositories.nereid, logFolder: workFolder });
  const client = new Client(server.grpcUrl, credentials.createInsecure());
  const ask = (rpc, request) =>
    new Promise((resolve, reject) => {
      const raw = (bytes) => bytes;
      client.makeUnaryRequest(`${SERVICE}${rpc}`, raw, raw, request, (error, answer) =>
        error === null ? resolve(answer) : reject(error),
      );
    });
  const name = Buffer.concat([Buffer.from([0x0a, model.name.length]), Buffer.from(model.name)]);
  const answers = {};
  for (const rpc of SMALL_RPCS) {
    const answer = await ask(rpc, rpc.startsWith('Model') ? name : Buffer.alloc(0));
    answers[`${SERVICE}${rpc}`] = answer.toString('base64');
  }
  answers[`${SERVICE}ModelInfer`] = (await ask('ModelInfer', inferRequest())).toString('base64');
  client.close();
  await server.stop();
  const path = join(workFolder, 'answers.json');
  writeFileSync(path, JSON.stringify(answers));
  return path;
}

/** ModelInferRequest with one FP32 input, by hand: field numbers of proto/grpc_service.proto. */
function inferRequest() {
  const field = (number, bytes) => Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
  const text = (number, value) => field(number, Buffer.from(value));
  const shape = [1, ...model.input.shape];
  const input = Buffer.concat([
    text(1, model.input.name),
    text(2, 'FP32'),
    field(3, Buffer.concat(shape.map(varint))),
  ]);
  const byteLength = 4 * shape.reduce((product, dim) => product * dim, 1);
  return Buffer.concat([text(1, model.name), field(5, input), field(7, Buffer.alloc(byteLength))]);
}

function varint(value) {
  const bytes = [];
  let left = value;
  for (; left > 127; left >>>= 7) bytes.push((left & 127) | 128);
  return Buffer.from([...bytes, left]);
}

async function measureKind(kind) {
  const port = await freePort();
  const child = fork(new URL('transport-server.mjs', import.meta.url), [kind, String(port), file]);
  await new Promise((resolve) => child.once('message', resolve));
  const server = { name: kind, url: '', grpcUrl: `127.0.0.1:${port}` };
  process.once('exit', () => child.kill());
  await warmUp({ perfAnalyzer, server, model, transport: 'grpc' });
  for (const concurrency of values.concurrency.split(',').map(Number)) {
    const point = { perfAnalyzer, server, model, transport: 'grpc', concurrency, client: 'sync', workFolder };
    const result = await measure(point);
    const key = `${kind} ${concurrency}`;
    samples.set(key, [...(samples.get(key) ?? []), result]);
    say(`${kind}, ${concurrency} in flight: ${formatNumber(result.inferPerS)} infer/s`);
  }
  child.kill();
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
