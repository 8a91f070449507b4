// The trace files as Triton writes them: what is in one, and which traces go to which.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { TraceOptions } from '../../domain/trace-options.ts';
import { parseTraceSettings } from './parse-trace-update.ts';
import { keptLog, numberRequest, runModel, runRequest, traceOptions } from './test-trace.ts';
import { TraceControl } from './trace-control.ts';

interface TraceEvent {
  readonly id: number;
  readonly request_id?: string;
  readonly timestamps?: readonly { readonly name: string; readonly ns: number }[];
}

class Fixture {
  readonly directory = mkdtempSync(join(tmpdir(), 'nereid-trace-'));
  readonly control: TraceControl;

  constructor(options: Partial<TraceOptions>) {
    const file = join(this.directory, 't');
    const all = traceOptions({ file, levels: ['TIMESTAMPS'], rate: 1, ...options });
    this.control = new TraceControl(all, { logger: keptLog().logger, hasModel: () => true });
  }

  async trace(...ids: string[]): Promise<void> {
    for (const id of ids) {
      const trace = this.control.start('py_echo');
      if (trace !== undefined) runRequest(trace, id);
    }
    await turn();
  }

  set(settings: Record<string, readonly string[]>): void {
    this.control.exchange('', () => parseTraceSettings(new Map(Object.entries(settings))));
  }

  read(name: string): TraceEvent[] {
    return JSON.parse(readFileSync(join(this.directory, name), 'utf8')) as TraceEvent[];
  }

  /** Ends tracing; the request ids in each file. */
  async files(): Promise<Record<string, string>> {
    await this.control.close();
    const names = readdirSync(this.directory).sort();
    return Object.fromEntries(
      names.map((name) => [
        name,
        this.read(name)
          .flatMap((event) => event.request_id ?? [])
          .join(' '),
      ]),
    );
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

test('a trace is one object for the model and one for every timestamp', async () => {
  const fixture = new Fixture({});
  await fixture.trace('a"b');
  await fixture.files();
  const events = fixture.read('t');
  fixture.remove();
  const shown = events.map((event) => event.timestamps?.map(({ name }) => name).join() ?? event);
  assert.deepEqual(shown, [
    'HTTP_RECV_START',
    'HTTP_RECV_END',
    { id: 1, model_name: 'py_echo', model_version: 1, request_id: 'a"b' },
    'REQUEST_START',
    'QUEUE_START',
    'COMPUTE_START',
    'COMPUTE_INPUT_END',
    'COMPUTE_OUTPUT_START',
    'COMPUTE_END',
    'REQUEST_END',
    'INFER_RESPONSE_COMPLETE',
    'HTTP_SEND_START',
    'HTTP_SEND_END',
  ]);
  const times = events.flatMap((event) => event.timestamps?.map(({ ns }) => ns) ?? []);
  assert.deepEqual(
    times.map((ns) => Math.round((ns - times[0]!) / 1e6)),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
  assert.ok(times.every(Number.isInteger));
});

test('a trace of tensors has the inputs when they are queued, the outputs, and no timestamps', async () => {
  const fixture = new Fixture({ levels: ['TENSORS'] });
  await fixture.trace('a');
  await fixture.control.close();
  const events = fixture.read('t');
  fixture.remove();
  assert.deepEqual(events, [
    {
      id: 1,
      activity: 'TENSOR_QUEUE_INPUT',
      tensor: { name: 'NUMBER', data: '5', shape: '1', dtype: 'INT32' },
    },
    {
      id: 1,
      activity: 'TENSOR_BACKEND_OUTPUT',
      tensor: { name: 'OUT', data: '5', shape: '1', dtype: 'INT32' },
    },
  ]);
});

test('children have ids of their own and name their parent', async () => {
  const fixture = new Fixture({});
  const trace = fixture.control.start('ens')!;
  trace.begin({ name: 'ens', version: 1 }, numberRequest('e'));
  trace.mark('REQUEST_START');
  for (const step of ['one', 'two']) runModel(trace.child(), step, numberRequest('e'));
  trace.end();
  // the core may mark it after the answer
  trace.mark('REQUEST_END');
  await turn();
  await fixture.control.close();
  const events = fixture.read('t');
  fixture.remove();
  assert.deepEqual(
    events.filter((event) => event.timestamps === undefined),
    [
      { id: 1, model_name: 'ens', model_version: 1, request_id: 'e' },
      { id: 2, model_name: 'one', model_version: 1, request_id: 'e', parent_id: 1 },
      { id: 3, model_name: 'two', model_version: 1, request_id: 'e', parent_id: 1 },
    ],
  );
  const ended = events.filter((event) => event.timestamps?.[0]?.name === 'REQUEST_END');
  assert.deepEqual(
    ended.map((event) => event.id),
    [1, 2, 3],
  );
});

for (const { name, options, run, expected } of [
  {
    name: 'without a frequency all traces are in the file itself',
    options: {},
    run: async (fixture: Fixture) => {
      await fixture.trace('a', 'b');
      fixture.set({ trace_rate: ['2'] });
      await fixture.trace('c', 'd');
    },
    expected: { t: 'a b d' },
  },
  {
    name: 'with a frequency a file has as many, the last one what is left',
    options: { logFrequency: 2 },
    run: (fixture: Fixture) => fixture.trace('a', 'b', 'c', 'd', 'e'),
    expected: { 't.0': 'a b', 't.1': 'c d', 't.2': 'e' },
  },
  {
    name: 'a change writes what the old setting has',
    options: { logFrequency: 2 },
    run: async (fixture: Fixture) => {
      await fixture.trace('a', 'b', 'c');
      fixture.set({ log_frequency: ['3'] });
      await fixture.trace('d', 'e', 'f');
    },
    expected: { 't.0': 'a b', 't.1': 'c', 't.2': 'd e f' },
  },
  {
    name: 'the last trace of a count is not waited for',
    options: { count: 3 },
    run: (fixture: Fixture) => fixture.trace('a', 'b', 'c', 'd'),
    expected: { 't.0': 'a b c' },
  },
  {
    name: 'when nothing was traced there is no file',
    options: { rate: 100 },
    run: (fixture: Fixture) => fixture.trace('a'),
    expected: {},
  },
] as const) {
  test(name, async () => {
    const fixture = new Fixture(options);
    await run(fixture);
    assert.deepEqual(await fixture.files(), expected);
    fixture.remove();
  });
}

test('a trace that ends after its setting was replaced is written under it', async () => {
  const fixture = new Fixture({ logFrequency: 5 });
  await fixture.trace('a');
  const open = fixture.control.start('py_echo')!;
  fixture.set({ log_frequency: ['1'] });
  await fixture.trace('b');
  runRequest(open, 'c');
  assert.deepEqual(await fixture.files(), { 't.0': 'b', 't.1': 'a c' });
  fixture.remove();
});

test('more text than the buffer holds goes to the same file in pieces', async () => {
  const fixture = new Fixture({ logFrequency: 3000 });
  const ids = Array.from({ length: 3001 }, (_, i) => String(i));
  await fixture.trace(...ids);
  const files = await fixture.files();
  fixture.remove();
  assert.deepEqual(Object.keys(files), ['t.0', 't.1']);
  assert.equal(files['t.0'], ids.slice(0, 3000).join(' '));
  assert.equal(files['t.1'], '3000');
});
