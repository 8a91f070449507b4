// --trace-config in opentelemetry mode; the rest is in parse-flags.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFlags } from './parse-flags.ts';

const parse = (...settings: string[]) =>
  parseFlags(['--model-repository=/models', ...settings.map((text) => `--trace-config=${text}`)]).trace;

test('the settings of opentelemetry keep their order, and the batch processor has its defaults', () => {
  const trace = parse(
    'mode=opentelemetry',
    'OpenTelemetry,url=http://localhost:1/v1/traces',
    'opentelemetry,resource=service.name=a',
    'opentelemetry,resource=test.key=b',
    'opentelemetry,bsp_schedule_delay=100',
    'rate=0',
  );
  assert.equal(trace.mode, 'opentelemetry');
  assert.equal(trace.rate, 0);
  assert.deepEqual(trace.opentelemetry, [
    ['url', 'http://localhost:1/v1/traces'],
    ['resource', 'service.name=a'],
    ['resource', 'test.key=b'],
    ['bsp_schedule_delay', '100'],
    ['bsp_max_queue_size', '2048'],
    ['bsp_max_export_batch_size', '512'],
  ]);
});

test('in triton mode they are not looked at', () => {
  assert.deepEqual(parse('opentelemetry,bsp_schedule_delay=x', 'Triton,file=t').opentelemetry, []);
  assert.equal(parse('Triton,file=t').file, 't');
});

test('a batch setting that is no number is refused', () => {
  for (const value of ['x', '-1', '4294967296']) {
    assert.throws(() => parse('mode=opentelemetry', `opentelemetry,bsp_max_queue_size=${value}`), {
      message: `Bad option: "--trace-config opentelemetry,bsp_max_queue_size".\nInvalid option value. Got ${value}`,
    });
  }
});
