// Traces as spans, sent to a collector that is a real HTTP server in this process.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { after, before, test } from 'node:test';
import { keptLog, numberRequest, runModel, runRequest, traceOptions } from './test-trace.ts';
import { TraceControl } from './trace-control.ts';

interface OtlpSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
  readonly events: readonly { name: string; timeUnixNano: string }[];
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { key: string; value: { stringValue?: string } }[] };
    readonly scopeSpans: readonly { readonly scope: { name: string }; readonly spans: readonly OtlpSpan[] }[];
  }[];
}

let collector: Server;
let url = '';
let bodies: OtlpBody[] = [];

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
  url = `http://127.0.0.1:${address.port}/v1/traces`;
});

after(() => {
  collector.closeAllConnections();
  collector.close();
});

function createControl(resources: readonly string[] = []): TraceControl {
  bodies = [];
  const opentelemetry = [
    ['url', url] as const,
    ...resources.map((text) => ['resource', text] as const),
    ['bsp_schedule_delay', '20'] as const,
  ];
  const options = traceOptions({ mode: 'opentelemetry', levels: ['TIMESTAMPS'], rate: 1, opentelemetry });
  return new TraceControl(options, { logger: keptLog().logger, hasModel: () => true });
}

function spans(): OtlpSpan[] {
  return bodies
    .flatMap((body) => body.resourceSpans)
    .flatMap((part) => part.scopeSpans.flatMap((scope) => scope.spans));
}

function spanOf(name: string): OtlpSpan {
  const found = spans().filter((span) => span.name === name);
  assert.equal(found.length, 1, name);
  return found[0]!;
}

test('a request is three spans under the span of the caller', async () => {
  const control = createControl(['service.name=test_triton', 'test.key=test=value']);
  const traceparent = '00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01';
  runRequest(control.start('py_echo', { traceparent, tracestate: 'vendor=1' })!, 'my-id');
  await control.close();
  const root = spanOf('InferRequest');
  const model = spanOf('py_echo');
  const compute = spanOf('compute');
  assert.equal(spans().length, 3);
  assert.ok(spans().every((span) => span.traceId === '0af7651916cd43dd8448eb211c12666c' && span.kind === 2));
  assert.equal(root.parentSpanId, 'b7ad6b7169242424');
  assert.equal(root.traceState, 'vendor=1');
  assert.equal(model.parentSpanId, root.spanId);
  assert.equal(compute.parentSpanId, model.spanId);
  const names = (span: OtlpSpan) => span.events.map((event) => event.name);
  assert.deepEqual(names(root), [
    'HTTP_RECV_START',
    'HTTP_RECV_END',
    'INFER_RESPONSE_COMPLETE',
    'HTTP_SEND_START',
    'HTTP_SEND_END',
  ]);
  assert.deepEqual(names(model), ['REQUEST_START', 'QUEUE_START', 'REQUEST_END']);
  assert.deepEqual(names(compute), [
    'COMPUTE_START',
    'COMPUTE_INPUT_END',
    'COMPUTE_OUTPUT_START',
    'COMPUTE_END',
  ]);
  assert.deepEqual(
    Object.fromEntries(model.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    {
      'triton.model_name': 'py_echo',
      'triton.model_version': 1,
      'triton.trace_id': 1,
      'triton.trace_parent_id': 0,
      'triton.request_id': 'my-id',
    },
  );
  const lengthMs = (span: OtlpSpan) =>
    Math.round(Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6);
  assert.deepEqual([root, model, compute].map(lengthMs), [11, 6, 3]);
  const [part] = bodies[0]!.resourceSpans;
  const attributes = new Map(part!.resource.attributes.map(({ key, value }) => [key, value.stringValue]));
  assert.equal(attributes.get('service.name'), 'test_triton');
  assert.equal(attributes.get('test.key'), 'test=value');
  assert.equal(part!.scopeSpans[0]!.scope.name, 'triton-server');
});

test('what a model was told of its span while it ran is what is sent', async () => {
  const control = createControl();
  const traces = [control.start('py_echo')!, control.start('py_echo')!];
  const told = traces.map((trace) => trace.traceparent());
  assert.deepEqual(
    told,
    traces.map((trace) => trace.traceparent()),
  );
  for (const trace of traces) runRequest(trace, '');
  await control.close();
  const computes = spans().filter((span) => span.name === 'compute');
  assert.deepEqual(
    computes.map((span) => `00-${span.traceId}-${span.spanId}-01`),
    told,
  );
  for (const compute of computes) {
    const model = spans().find((span) => span.spanId === compute.parentSpanId)!;
    assert.equal(model.traceId, compute.traceId);
  }
  assert.equal(new Set(spans().map((span) => span.spanId)).size, 6);
});

test('the steps of an ensemble are under its span, each with its compute', async () => {
  const control = createControl();
  const trace = control.start('ens')!;
  trace.begin({ name: 'ens', version: 3 }, numberRequest(''));
  trace.mark('REQUEST_START', 1000);
  runModel(trace.child(), 'one', numberRequest(''), 1001);
  trace.mark('REQUEST_END', 1010);
  trace.end();
  await control.close();
  assert.deepEqual(
    spans()
      .map((span) => span.name)
      .sort(),
    ['InferRequest', 'compute', 'ens', 'one'],
  );
  assert.equal(spanOf('one').parentSpanId, spanOf('ens').spanId);
  assert.equal(spanOf('compute').parentSpanId, spanOf('one').spanId);
  assert.equal(spanOf('InferRequest').parentSpanId, undefined);
  const parent = spanOf('one').attributes.find(({ key }) => key === 'triton.trace_parent_id');
  assert.deepEqual(parent?.value, { intValue: 1 });
  assert.equal(
    spanOf('ens').attributes.some(({ key }) => key === 'triton.request_id'),
    false,
  );
  const service = bodies[0]!.resourceSpans[0]!.resource.attributes.find(({ key }) => key === 'service.name');
  assert.deepEqual(service?.value, { stringValue: 'triton-inference-server' });
});

test('a request that no model took is the root span alone', async () => {
  const control = createControl();
  const trace = control.start('py_echo')!;
  trace.mark('HTTP_RECV_START', 1000);
  trace.end();
  await control.close();
  assert.deepEqual(
    spans().map((span) => span.name),
    ['InferRequest'],
  );
});

test('a collector that is not there does not hold the end of the server', async () => {
  const { logger, lines } = keptLog();
  const opentelemetry = [['url', 'http://127.0.0.1:1/v1/traces']] as const;
  const options = traceOptions({ mode: 'opentelemetry', levels: ['TIMESTAMPS'], rate: 1, opentelemetry });
  const control = new TraceControl(options, { logger, hasModel: () => true });
  runRequest(control.start('py_echo')!, 'a');
  await control.close();
  assert.ok(lines.length <= 1);
});
