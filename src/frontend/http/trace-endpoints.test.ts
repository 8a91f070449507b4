// The trace settings over HTTP, case by case as a real Triton 2.51 answers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TraceControl } from '../../core/trace/trace-control.ts';
import { StatusError } from '../../domain/status.ts';
import { createLogger } from '../../lib/logger.ts';
import { statusAnswer } from './answer.ts';
import { traceSettings } from './trace-endpoints.ts';

const DEFAULTS =
  '{"trace_level":["OFF"],"trace_rate":"1000","trace_count":"-1","log_frequency":"0","trace_file":"","trace_mode":"triton"}';

type Call = (body: string | undefined, model?: string) => string;

/** Status and body of the answers of a new server. */
function createServer(): Call {
  const trace = new TraceControl(
    { mode: 'triton', levels: [], rate: 1000, count: -1, file: '', logFrequency: 0, opentelemetry: [] },
    { logger: createLogger(), hasModel: (name) => name === 'nobatch' },
  );
  return (body, model = '') => {
    const answer = answerOf(() =>
      traceSettings({ trace }, { model, body: body === undefined ? undefined : Buffer.from(body) }),
    );
    assert.equal(answer.type, 'application/json');
    return `${answer.status} ${Buffer.concat(answer.parts).toString()}`;
  };
}

function answerOf(make: () => ReturnType<typeof traceSettings>): ReturnType<typeof traceSettings> {
  try {
    return make();
  } catch (thrown) {
    return statusAnswer(StatusError.from(thrown));
  }
}

function changed(from: string, to: string): string {
  return `200 ${DEFAULTS.replace(from, to)}`;
}

test('GET shows, POST changes and shows', () => {
  const call = createServer();
  assert.equal(call(undefined), `200 ${DEFAULTS}`);
  assert.equal(call('{"trace_count": "7"}'), changed('"-1"', '"7"'));
  assert.equal(call(undefined), changed('"-1"', '"7"'));
  assert.equal(call('{"trace_count": null}'), `200 ${DEFAULTS}`);
  assert.equal(call('{"log_frequency": "3"}'), changed('"log_frequency":"0"', '"log_frequency":"3"'));
});

test('a model has its own settings until null clears them', () => {
  const call = createServer();
  const own = changed('"1000"', '"9"');
  assert.equal(call('{"trace_rate": "9"}', 'nobatch'), own);
  assert.equal(call(undefined, 'nobatch'), own);
  assert.equal(call(undefined), `200 ${DEFAULTS}`);
  assert.equal(call('{"trace_rate": null}', 'nobatch'), `200 ${DEFAULTS}`);
  assert.equal(call('{"trace_rate": "5"}', 'no_such'), '400 {"error":"Request for unknown model : no_such"}');
  assert.equal(call('{', 'no_such'), '400 {"error":"Request for unknown model : no_such"}');
});

test('what has no effect is no mistake', () => {
  const call = createServer();
  for (const body of [
    '{"trace_level": ["OFF"]}',
    '{"trace_level": ["NOISE"]}',
    '{"trace_level": []}',
    '{"trace_mode": "opentelemetry"}',
    '{"foo": "1"}',
    '[]',
    '5',
  ]) {
    assert.equal(call(body), `200 ${DEFAULTS}`, body);
  }
  assert.equal(call('{"trace_rate": "-1"}'), changed('"1000"', '"4294967295"'));
  assert.equal(call('{"trace_rate": "1", "trace_rate": "2"}'), changed('"1000"', '"1"'));
});

test('mistakes are answered as Triton answers them, and change nothing', () => {
  const call = createServer();
  for (const [body, status, error] of [
    [
      '{"trace_level": ["TIMESTAMPS", "TENSORS"], "trace_rate": "2000000000"}',
      400,
      'Attempting to set invalid trace setting :trace file name is not given',
    ],
    ['{"trace_level": ["OFF", "TIMESTAMPS"]}', 400, "Expect only one trace level 'OFF' is specified"],
    ['{"trace_level": "OFF"}', 500, 'attempt to access JSON non-array as array'],
    ['{"trace_level": [1]}', 500, 'attempt to access JSON non-string as string'],
    ['{"trace_rate": 5}', 500, 'attempt to access JSON non-string as string'],
    ['{"trace_rate": "abc"}', 400, "Unable to parse 'trace_rate', got: abc"],
    [
      '{"trace_rate": "99999999999"}',
      400,
      "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: 99999999999",
    ],
    ['{"trace_count": "-2"}', 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"],
    ['{"trace_file": "x"}', 501, 'trace file location can not be updated through network protocol'],
    ['{"trace_file": null}', 501, 'trace file location can not be updated through network protocol'],
    ['{', 500, 'failed to parse the request JSON buffer: Missing a name for object member. at 1'],
    ['', 500, 'failed to parse the request JSON buffer: The document is empty. at 0'],
  ] as const) {
    assert.equal(call(body, 'nobatch'), `${status} {"error":${JSON.stringify(error)}}`, body);
  }
  assert.equal(call(undefined, 'nobatch'), `200 ${DEFAULTS}`);
});
