// Tracing of a running server: Triton's trace files, the settings over HTTP, and OpenTelemetry spans sent to a
// collector that lives in this process.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { GrpcClient, identityRequest } from '../support/grpc.ts';
import {
  addExample,
  addIdentity,
  createRepository,
  identityBody,
  type TestRepository,
} from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

interface TraceEvent {
  readonly id: number;
  readonly model_name?: string;
  readonly request_id?: string;
  readonly activity?: string;
  readonly tensor?: { name: string; data: string; shape: string; dtype: string };
  readonly timestamps?: readonly { readonly name: string; readonly ns: number }[];
}

/** What every request of an ordinary model leaves. */
const CORE = ['QUEUE_START', 'COMPUTE_START', 'COMPUTE_INPUT_END', 'COMPUTE_OUTPUT_START', 'COMPUTE_END'];
const HTTP = [
  'HTTP_RECV_START',
  'HTTP_RECV_END',
  'INFER_RESPONSE_COMPLETE',
  'HTTP_SEND_START',
  'HTTP_SEND_END',
];
const MS_MAX = 10_000;

function createModels(): TestRepository {
  const repository = createRepository();
  addIdentity(repository, { name: 'same' });
  addExample(repository, { name: 'add_sub', example: 'add_sub_int32' });
  return repository;
}

async function post(server: RunningServer, path: string, body: string, headers = {}): Promise<number> {
  const response = await fetch(`${server.httpUrl}${path}`, { method: 'POST', body, headers });
  await response.arrayBuffer();
  return response.status;
}

async function readTrace(path: string): Promise<TraceEvent[]> {
  for (const end = Date.now() + MS_MAX; Date.now() < end; await sleep(20)) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    if (text.endsWith(']')) return JSON.parse(text) as TraceEvent[];
  }
  return assert.fail(`${path} was not written`);
}

function timesOf(events: readonly TraceEvent[]): Map<string, number> {
  return new Map(events.flatMap((event) => event.timestamps ?? []).map(({ name, ns }) => [name, ns]));
}

describe('trace files', () => {
  let repository: TestRepository;
  let server: RunningServer;
  let file: string;

  before(async () => {
    repository = createModels();
    file = repository.at('.trace');
    const settings = [`triton,file=${file}`, 'triton,log-frequency=1', 'level=TIMESTAMPS', 'rate=1'];
    server = await startServer({
      repository: repository.path,
      args: settings.map((text) => `--trace-config=${text}`),
    });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  test('a request leaves its timestamps, in the order of time', async () => {
    assert.equal(await post(server, '/v2/models/same/infer', identityBody(1, { id: 'first' })), 200);
    const events = await readTrace(`${file}.0`);
    assert.deepEqual(
      events.filter((event) => event.timestamps === undefined),
      [{ id: 1, model_name: 'same', model_version: 1, request_id: 'first' }],
    );
    const times = timesOf(events);
    assert.deepEqual([...times.keys()].sort(), [...CORE, ...HTTP, 'REQUEST_START', 'REQUEST_END'].sort());
    const inOrder = [
      'HTTP_RECV_START',
      'HTTP_RECV_END',
      'REQUEST_START',
      ...CORE,
      'HTTP_SEND_START',
      'HTTP_SEND_END',
    ];
    const ns = inOrder.map((name) => times.get(name)!);
    assert.deepEqual(
      ns,
      [...ns].sort((a, b) => a - b),
    );
    // the steady clock of the machine, which this process has too
    const ageNs = Number(process.hrtime.bigint()) - times.get('HTTP_RECV_START')!;
    assert.ok(ageNs > 0 && ageNs < 60e9, `${ageNs}`);
  });

  test('a request that cannot be read is traced as far as it came', async () => {
    assert.equal(await post(server, '/v2/models/same/infer', '{'), 500);
    const events = await readTrace(`${file}.1`);
    assert.equal(events[0]?.id, 2);
    const times = timesOf(events);
    assert.ok(times.has('HTTP_RECV_END'));
    assert.ok(!times.has('COMPUTE_START'));
  });

  test('a model can have tensors traced, alone', async () => {
    const setting = '/v2/models/add_sub/trace/setting';
    assert.equal(await post(server, setting, '{"trace_level":["TENSORS"]}'), 200);
    const values = Array.from({ length: 16 }, (_, i) => i);
    const inputs = ['INPUT0', 'INPUT1'].map((name) => ({
      name,
      datatype: 'INT32',
      shape: [1, 16],
      data: values,
    }));
    assert.equal(await post(server, '/v2/models/add_sub/infer', JSON.stringify({ inputs })), 200);
    const events = await readTrace(`${file}.2`);
    const data = values.join(',');
    assert.deepEqual(events.slice(0, 2), [
      {
        id: 3,
        activity: 'TENSOR_QUEUE_INPUT',
        tensor: { name: 'INPUT0', data, shape: '1,16', dtype: 'INT32' },
      },
      {
        id: 3,
        activity: 'TENSOR_QUEUE_INPUT',
        tensor: { name: 'INPUT1', data, shape: '1,16', dtype: 'INT32' },
      },
    ]);
    const sum = events.find((event) => event.tensor?.name === 'OUTPUT0');
    assert.equal(sum?.activity, 'TENSOR_BACKEND_OUTPUT');
    assert.equal(sum?.tensor?.data, values.map((value) => 2 * value).join(','));
    assert.ok(events.every((event) => event.timestamps === undefined));
  });

  test('a version has no settings of its own, and they are not put', async () => {
    assert.equal(await post(server, '/v2/models/same/versions/1/trace/setting', '{}'), 404);
    const response = await fetch(`${server.httpUrl}/v2/trace/setting`, { method: 'PUT', body: '{}' });
    assert.equal(response.status, 405);
    assert.deepEqual(await response.json(), { error: 'Method Not Allowed' });
  });

  test('what is left is written when the server ends', async () => {
    assert.equal(await post(server, '/v2/trace/setting', '{"log_frequency":"0"}'), 200);
    for (const id of ['a', 'b']) await post(server, '/v2/models/same/infer', identityBody(1, { id }));
    assert.ok(!existsSync(file));
    await server.stop();
    const events = await readTrace(file);
    assert.deepEqual(
      events.flatMap((event) => event.request_id ?? []),
      ['a', 'b'],
    );
  });
});

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

describe('OpenTelemetry', () => {
  let repository: TestRepository;
  let server: RunningServer;
  let collector: Server;
  const bodies: OtlpBody[] = [];

  before(async () => {
    collector = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        bodies.push(JSON.parse(Buffer.concat(pieces).toString()) as OtlpBody);
        response.setHeader('Content-Type', 'application/json').end('{}');
      });
    }).listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const address = collector.address();
    assert.ok(typeof address === 'object' && address !== null);
    repository = createModels();
    const settings = [
      'mode=opentelemetry',
      `opentelemetry,url=http://127.0.0.1:${address.port}/v1/traces`,
      'opentelemetry,resource=service.name=test_triton',
      'opentelemetry,bsp_schedule_delay=50',
      'level=TIMESTAMPS',
      // only requests with a context
      'rate=0',
    ];
    server = await startServer({
      repository: repository.path,
      args: settings.map((text) => `--trace-config=${text}`),
      isGrpc: true,
    });
  });
  after(async () => {
    await server?.stop();
    collector?.closeAllConnections();
    collector?.close();
    repository?.remove();
  });

  const spans = () =>
    bodies.flatMap((body) =>
      body.resourceSpans.flatMap((part) => part.scopeSpans.flatMap((scope) => scope.spans)),
    );

  test('a request under the span of its caller becomes spans there, others do not', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01';
    assert.equal(await post(server, '/v2/models/same/infer', identityBody(1)), 200);
    assert.equal(await post(server, '/v2/models/same/infer', identityBody(1), { traceparent }), 200);
    for (const end = Date.now() + MS_MAX; spans().length < 3 && Date.now() < end; ) await sleep(20);
    assert.deepEqual(
      spans()
        .map((span) => span.name)
        .sort(),
      ['InferRequest', 'compute', 'same'],
    );
    const [root, model, compute] = ['InferRequest', 'same', 'compute'].map(
      (name) => spans().find((span) => span.name === name)!,
    );
    assert.ok(spans().every((span) => span.traceId === '0af7651916cd43dd8448eb211c12666c'));
    assert.equal(root?.parentSpanId, 'b7ad6b7169242424');
    assert.equal(model?.parentSpanId, root?.spanId);
    assert.equal(compute?.parentSpanId, model?.spanId);
    const attributes = bodies[0]!.resourceSpans[0]!.resource.attributes;
    assert.equal(attributes.find(({ key }) => key === 'service.name')?.value.stringValue, 'test_triton');
  });

  test('over gRPC the context comes from the metadata', async () => {
    bodies.length = 0;
    const client = new GrpcClient(server.grpcAddress);
    try {
      const metadata = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
      const { code } = await client.call('ModelInfer', identityRequest('same', 1), { metadata });
      assert.equal(code, 0);
    } finally {
      client.close();
    }
    for (const end = Date.now() + MS_MAX; spans().length < 3 && Date.now() < end; ) await sleep(20);
    const root = spans().find((span) => span.name === 'InferRequest');
    assert.equal(root?.traceId, '4bf92f3577b34da6a3ce929d0e0e4736');
    assert.equal(root?.parentSpanId, '00f067aa0ba902b7');
  });

  test('the settings show the mode and its options, and no file', async () => {
    const settings = (await (await fetch(`${server.httpUrl}/v2/trace/setting`)).json()) as Record<
      string,
      string
    >;
    assert.equal(settings.trace_mode, 'opentelemetry');
    assert.equal(settings.bsp_schedule_delay, '50');
    assert.equal(settings.bsp_max_queue_size, '2048');
    assert.ok(!('trace_file' in settings));
  });
});
