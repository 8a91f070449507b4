// The settings of tracing as gRPC carries them, case by case as a real Triton 2.51 answers, and which requests are
// sampled under them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StatusError } from '../../domain/status.ts';
import type { TraceOptions } from '../../domain/trace-options.ts';
import { parseTraceSettings } from './parse-trace-update.ts';
import { keptLog, runRequest, traceOptions } from './test-trace.ts';
import { TraceControl } from './trace-control.ts';

const DEFAULTS = {
  trace_level: ['OFF'],
  trace_rate: ['1000'],
  trace_count: ['-1'],
  log_frequency: ['0'],
  trace_file: [''],
  trace_mode: ['triton'],
};

type Settings = Record<string, readonly string[]>;

function createControl(options: Partial<TraceOptions> = {}): TraceControl {
  const { logger } = keptLog();
  return new TraceControl(traceOptions(options), { logger, hasModel: (name) => !name.startsWith('no_such') });
}

/** TraceSetting as the gRPC frontend does it. */
function call(control: TraceControl, settings: Settings = {}, model = ''): Settings {
  return Object.fromEntries(
    control.exchange(model, () => parseTraceSettings(new Map(Object.entries(settings)))),
  );
}

function refusal(control: TraceControl, settings: Settings, model = ''): string {
  try {
    call(control, settings, model);
  } catch (thrown) {
    assert.ok(thrown instanceof StatusError);
    return `${thrown.code} ${thrown.message}`;
  }
  assert.fail('the settings were taken');
}

test('settings that are asked for are shown in full', () => {
  assert.deepEqual(call(createControl()), DEFAULTS);
  assert.equal(refusal(createControl(), {}, 'no_such'), 'INVALID_ARG Request for unknown model : no_such');
  assert.equal(
    refusal(createControl(), { trace_rate: ['x'] }, 'no_such'),
    'INVALID_ARG Request for unknown model : no_such',
    'the model is checked before the settings are read',
  );
});

test('a model has its own values until they are cleared', () => {
  const control = createControl();
  assert.deepEqual(call(control, { trace_rate: ['9'] }, 'nobatch'), { ...DEFAULTS, trace_rate: ['9'] });
  assert.deepEqual(call(control, {}, 'nobatch'), { ...DEFAULTS, trace_rate: ['9'] });
  assert.deepEqual(call(control), DEFAULTS);
  call(control, { trace_count: ['7'] });
  assert.deepEqual(call(control, {}, 'nobatch'), { ...DEFAULTS, trace_rate: ['9'], trace_count: ['7'] });
  assert.deepEqual(call(control, { trace_rate: [] }, 'nobatch'), { ...DEFAULTS, trace_count: ['7'] });
  assert.deepEqual(call(control, { trace_count: [] }), DEFAULTS);
  assert.deepEqual(call(control, {}, 'nobatch'), DEFAULTS);
});

test('what Triton takes without a word is taken', () => {
  const control = createControl();
  assert.deepEqual(call(control, { trace_level: ['NOISE'] }), DEFAULTS);
  assert.deepEqual(call(control, { foo: ['1'] }), DEFAULTS);
  assert.deepEqual(call(control, { trace_mode: ['opentelemetry'] }), DEFAULTS);
  assert.deepEqual(call(control, { trace_rate: ['-1'] }).trace_rate, ['4294967295']);
  assert.deepEqual(call(control, { trace_rate: [' +5x'] }).trace_rate, ['5']);
  assert.deepEqual(call(control, { trace_rate: ['0'] }).trace_rate, ['0'], 'while tracing is off');
  assert.deepEqual(call(control, { log_frequency: ['-1'] }).log_frequency, ['4294967295']);
});

test('refusals are worded as Triton words them', () => {
  const control = createControl();
  for (const [settings, expected] of [
    [{ trace_level: ['OFF', 'TIMESTAMPS'] }, "INVALID_ARG Expect only one trace level 'OFF' is specified"],
    [{ trace_rate: ['1', '2'] }, "INVALID_ARG expect only 1 value for 'trace_rate'"],
    [{ trace_rate: ['abc'] }, "INVALID_ARG Unable to parse 'trace_rate', got: abc"],
    [
      { trace_rate: ['3000000000'] },
      "INVALID_ARG Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 3000000000",
    ],
    [{ trace_count: ['-2'] }, "INVALID_ARG Unable to parse 'trace_count'. Expecting value >= -1, got: -2"],
    [
      { trace_count: ['99999999999'] },
      "INVALID_ARG Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 99999999999",
    ],
    [{ log_frequency: [''] }, "INVALID_ARG Unable to parse 'log_frequency', got: "],
    [
      { trace_file: ['x'], trace_rate: ['abc'] },
      'UNSUPPORTED trace file location can not be updated through network protocol',
    ],
    [
      { trace_level: ['TIMESTAMPS'], trace_rate: ['2000000000'] },
      'INVALID_ARG Attempting to set invalid trace setting :trace file name is not given',
    ],
  ] as const) {
    assert.equal(refusal(control, settings), expected);
    assert.equal(refusal(control, settings, 'nobatch'), expected);
  }
  assert.deepEqual(call(control), DEFAULTS);
  assert.deepEqual(call(control, {}, 'nobatch'), DEFAULTS);
});

test('with a file tracing can be switched on, but not with a rate or a count of 0', () => {
  const control = createControl({ file: 'x', levels: ['TIMESTAMPS'], rate: 1 });
  const invalid = 'INVALID_ARG Attempting to set invalid trace setting :';
  assert.equal(refusal(control, { trace_rate: ['0'] }), `${invalid}sample rate must be non-zero`);
  assert.equal(refusal(control, { trace_count: ['0'] }), invalid);
  call(control, { trace_level: ['OFF'] });
  assert.equal(control.isOn, false);
  call(control, { trace_level: ['TENSORS', 'TIMESTAMPS'] }, 'nobatch');
  assert.equal(control.isOn, true);
  assert.deepEqual(call(control, {}, 'nobatch').trace_level, ['TIMESTAMPS', 'TENSORS']);
  assert.equal(control.start('other'), undefined, 'only that model is traced');
  assert.notEqual(control.start('nobatch'), undefined);
});

test('a model that cannot follow a global change is named by its reason, the global change stays', () => {
  const control = createControl({ file: 'x' });
  call(control, { trace_rate: ['0'] }, 'nobatch');
  assert.match(refusal(control, { trace_level: ['TIMESTAMPS'] }), /:sample rate must be non-zero$/);
  assert.deepEqual(call(control).trace_level, ['TIMESTAMPS']);
  assert.deepEqual(call(control, {}, 'nobatch').trace_level, ['OFF']);
});

test('in opentelemetry mode the file is not shown and the options are', () => {
  const opentelemetry = [
    ['url', 'http://127.0.0.1:9/v1/traces'],
    ['resource', 'a=b'],
    ['resource', 'c=d'],
  ] as const;
  const control = createControl({ mode: 'opentelemetry', opentelemetry });
  assert.deepEqual(call(control), {
    trace_level: ['OFF'],
    trace_rate: ['1000'],
    trace_count: ['-1'],
    trace_mode: ['opentelemetry'],
    url: ['http://127.0.0.1:9/v1/traces'],
    resource: ['a=b', 'c=d'],
  });
});

function samples(control: TraceControl, requestCount: number, model = 'm'): string {
  const isSampled = Array.from({ length: requestCount }, () => control.start(model) !== undefined);
  return isSampled.map((is) => (is ? 'x' : '.')).join('');
}

test('every n-th request is sampled, as many as the count says, and each setting counts for itself', () => {
  const control = createControl({ file: 'x', levels: ['TIMESTAMPS'], rate: 3, count: 2 });
  assert.equal(samples(control, 4), '..x.');
  assert.deepEqual(call(control).trace_count, ['1']);
  assert.equal(samples(control, 6), '.x....');
  assert.equal(control.isOn, false, 'a count that has run out costs nothing');
  assert.deepEqual(call(control).trace_count, ['0']);
  call(control, { trace_count: ['-1'], trace_rate: ['2'] });
  call(control, { trace_rate: ['1'], trace_count: ['3'] }, 'own');
  assert.equal(samples(control, 5), '.x.x.');
  assert.equal(samples(control, 5, 'own'), 'xxx..');
});

test('a request with a context is always sampled, in opentelemetry mode alone', () => {
  const context = {
    traceparent: '00-0af7651916cd43dd8448eb211c12666c-b7ad6b7169242424-01',
    tracestate: undefined,
  };
  const opentelemetry = createControl({ mode: 'opentelemetry', levels: ['TIMESTAMPS'], rate: 0 });
  assert.equal(opentelemetry.isOn, true);
  assert.equal(opentelemetry.start('m'), undefined);
  assert.notEqual(opentelemetry.start('m', context), undefined);
  assert.equal(opentelemetry.start('m', { ...context, traceparent: '00-0-0-01' }), undefined);
  const triton = createControl({ file: 'x', levels: ['TIMESTAMPS'], rate: 1000 });
  assert.equal(triton.start('m', context), undefined);
});

test('a directory that is not there costs one line in the log and no request', async () => {
  const { logger, lines } = keptLog();
  const options = traceOptions({
    file: 'no/such/directory/trace',
    levels: ['TIMESTAMPS'],
    rate: 1,
    logFrequency: 1,
  });
  const control = new TraceControl(options, { logger, hasModel: () => true });
  for (const id of ['a', 'b', 'c']) runRequest(control.start('m')!, id);
  await control.close();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /failed creating trace file: ENOENT/);
});
