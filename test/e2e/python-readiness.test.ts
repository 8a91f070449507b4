// What a model in Python says of itself: whether it is ready (is_ready), and to which span its work belongs
// (InferenceTrace.get_context), through the built server and a collector that lives in this process.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { GrpcClient } from '../support/grpc.ts';
import { inRoot } from '../support/paths.ts';
import { pythonSkip } from '../support/python.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const MODELS = ['moody', 'moody_async', 'traced'];

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
}

describe('what a Python model says of itself', { skip: pythonSkip }, () => {
  const repository = mkdtempSync(join(tmpdir(), 'nereid-readiness-'));
  const spans: Span[] = [];
  const collector = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(pieces).toString()) as {
        resourceSpans: { scopeSpans: { spans: Span[] }[] }[];
      };
      spans.push(...body.resourceSpans.flatMap((part) => part.scopeSpans.flatMap((scope) => scope.spans)));
      response.setHeader('Content-Type', 'application/json').end('{}');
    });
  });
  let server: RunningServer;

  before(async () => {
    for (const model of MODELS) {
      cpSync(inRoot('test', 'e2e', 'python_models', model), join(repository, model), { recursive: true });
    }
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const { port } = collector.address() as AddressInfo;
    server = await startServer({
      repository,
      isGrpc: true,
      args: [
        '--trace-config=mode=opentelemetry',
        '--trace-config=rate=1',
        '--trace-config=level=TIMESTAMPS',
        `--trace-config=opentelemetry,url=http://127.0.0.1:${port}/v1/traces`,
        '--trace-config=opentelemetry,bsp_schedule_delay=50',
      ],
      env: { NEREID_PYTHON: PYTHON },
    });
  });
  after(async () => {
    await server?.stop();
    collector.closeAllConnections();
    collector.close();
    rmSync(repository, { recursive: true, force: true });
  });

  const isReady = async (model: string) =>
    (await fetch(`${server.httpUrl}/v2/models/${model}/ready`)).status === 200;

  async function infer(model: string, inputs: object[], headers = {}): Promise<unknown[]> {
    const url = `${server.httpUrl}/v2/models/${model}/infer`;
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ inputs }) });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return (JSON.parse(text) as { outputs: { data: unknown[] }[] }).outputs[0]!.data;
  }

  const setMood = (mood: string) =>
    infer('moody', [{ name: 'MOOD', datatype: 'BYTES', shape: [1], data: [mood] }]);

  test('is_ready is asked over both protocols, and only of this model', async () => {
    const client = new GrpcClient(server.grpcAddress);
    // Field 1 of the request is the name; field 1 of the answer is true, or absent.
    const request = Buffer.concat([Buffer.from([0x0a, 5]), Buffer.from('moody')]);
    const readyOverGrpc = async () =>
      (await client.call('ModelReady', request)).bytes?.toString('hex') === '0801';
    assert.equal(await isReady('moody'), true);
    await setMood('no');
    assert.equal(await isReady('moody'), false);
    assert.equal(await readyOverGrpc(), false);
    assert.equal(await isReady('traced'), true);
    // The server as a whole, as in Triton, does not ask the models.
    assert.equal((await fetch(`${server.httpUrl}/v2/health/ready`)).status, 200);
    await setMood('yes');
    assert.equal(await isReady('moody'), true);
    assert.equal(await readyOverGrpc(), true);
    client.close();
  });

  test('what is no boolean and what raises is not ready, and the log says why', async () => {
    await setMood('wrong');
    assert.equal(await isReady('moody'), false);
    assert.ok(await server.waitForLog(/is_ready\(\) must return a boolean value/));
    await setMood('raise');
    assert.equal(await isReady('moody'), false);
    assert.ok(await server.waitForLog(/in a bad mood/));
  });

  test('after five seconds it is not ready, and the model goes on serving', async () => {
    await setMood('slow');
    const beganMs = performance.now();
    assert.equal(await isReady('moody'), false);
    const tookMs = performance.now() - beganMs;
    assert.ok(tookMs > 4900 && tookMs < 8000, `${tookMs} ms`);
    await setMood('yes');
    assert.equal(await isReady('moody'), true);
  });

  test('a coroutine is waited for, and all instances must agree', async () => {
    assert.equal(await isReady('moody_async'), false);
  });

  test('the context of a traced request is that of its compute span', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01';
    const input = { name: 'IN', datatype: 'INT32', shape: [1], data: [1] };
    const [told] = await infer('traced', [input], { traceparent });
    const context = JSON.parse(String(told)) as { traceparent: string };
    const [version, traceId, spanId, flags] = context.traceparent.split('-');
    assert.deepEqual([version, traceId, flags], ['00', '0af7651916cd43dd8448eb211c12666c', '01']);
    let found: Span | undefined;
    for (let i = 0; i < 200 && found === undefined; i++) {
      found = spans.find((span) => span.spanId === spanId);
      await sleep(25);
    }
    assert.deepEqual([found?.name, found?.traceId], ['compute', traceId]);
  });
});
