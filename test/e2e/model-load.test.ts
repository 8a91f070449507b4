// How start-up models are loaded: so many at a time (--model-load-thread-count), again after a failure
// (--model-load-retry-count), and with their warmup run before they serve.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { call } from '../support/load.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { startServer } from '../support/server.ts';

const MODEL_COUNT = 6;

/** A model that runs `load` while it is loaded and `seen` in every execution. */
function addModel(
  repository: TestRepository,
  options: { name: string; load?: string; seen?: string; config?: string },
): void {
  mkdirSync(repository.at(options.name, '1'), { recursive: true });
  writeFileSync(
    repository.at(options.name, '1', 'model.mjs'),
    `import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineModel } from 'nereid/model';
const log = (line) => appendFileSync(${JSON.stringify(logOf(repository))}, line + '\\n');
export default defineModel({
  async initialize() { ${options.load ?? ''} },
  execute(requests) {
    ${options.seen ?? ''}
    return requests.map(({ inputs }) => ({ outputs: [inputs[0].rename('Y')] }));
  },
});
`,
  );
  writeFileSync(
    repository.at(options.name, 'config.pbtxt'),
    `backend: "node"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
${options.config ?? ''}`,
  );
}

function logOf(repository: TestRepository): string {
  return repository.at('log.txt');
}

function linesOf(repository: TestRepository): string[] {
  return readFileSync(logOf(repository), 'utf8').trim().split('\n');
}

test('at most so many models load at one time, and so many do', async () => {
  const repository = createRepository();
  writeFileSync(logOf(repository), '');
  for (let i = 0; i < MODEL_COUNT; i++) {
    addModel(repository, { name: `m${i}`, load: `log('begin'); await sleep(400); log('end');` });
  }
  const server = await startServer({ repository: repository.path, args: ['--model-load-thread-count=2'] });
  try {
    let loading = 0;
    let most = 0;
    for (const line of linesOf(repository)) {
      loading += line === 'begin' ? 1 : -1;
      most = Math.max(most, loading);
    }
    assert.equal(linesOf(repository).length, 2 * MODEL_COUNT);
    assert.equal(most, 2);
  } finally {
    await server.stop();
    repository.remove();
  }
});

test('a load that failed is tried again, as often as the flag says', async () => {
  const repository = createRepository();
  writeFileSync(logOf(repository), '');
  const flag = JSON.stringify(repository.at('flag.txt'));
  addModel(repository, {
    name: 'second',
    load: `log('second'); if (!existsSync(${flag})) { writeFileSync(${flag}, ''); throw new Error('not yet'); }`,
  });
  addModel(repository, { name: 'never', load: `log('never'); throw new Error('broken for good');` });
  const server = await startServer({
    repository: repository.path,
    args: ['--model-load-retry-count=1', '--exit-on-error=false', '--strict-readiness=false'],
  });
  try {
    assert.equal((await call(server, { path: '/v2/models/second/ready' })).status, 200);
    const index = await call(server, { path: '/v2/repository/index', body: '{}' });
    const rows = JSON.parse(index.text) as { name: string; state: string; reason?: string }[];
    const never = rows.find(({ name }) => name === 'never');
    assert.equal(never?.state, 'UNAVAILABLE');
    assert.match(never?.reason ?? '', /broken for good/);
    assert.deepEqual(linesOf(repository).sort(), ['never', 'never', 'second', 'second']);
  } finally {
    await server.stop();
    repository.remove();
  }
});

test('warmup samples run before the model serves; one that fails is the reason why it does not load', async () => {
  const repository = createRepository();
  writeFileSync(logOf(repository), '');
  const sample = (name: string, data: string) =>
    `model_warmup { name: "${name}" batch_size: 2 count: 2 inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 ${data} } } }`;
  mkdirSync(repository.at('warm', 'warmup'), { recursive: true });
  writeFileSync(repository.at('warm', 'warmup', 'raw'), Buffer.from(Float32Array.of(5, 6).buffer));
  addModel(repository, {
    name: 'warm',
    seen: `log(requests.map(({ inputs }) => [...inputs[0].data].join()).join(' '));`,
    config: `${sample('zeros', 'zero_data: true')} ${sample('file', 'input_data_file: "raw"')}`,
  });
  addModel(repository, {
    name: 'cold',
    seen: `throw new Error('An Error Occurred');`,
    config: sample('zero sample', 'zero_data: true'),
  });
  const server = await startServer({
    repository: repository.path,
    args: ['--exit-on-error=false', '--strict-readiness=false'],
  });
  try {
    assert.deepEqual(linesOf(repository), ['0,0 0,0', '0,0 0,0', '5,6 5,6', '5,6 5,6']);
    // They count like other executions, as in Triton.
    const { text } = await call(server, { path: '/v2/models/warm/stats' });
    const [stats] = (JSON.parse(text) as { model_stats: Record<string, number>[] }).model_stats;
    assert.deepEqual([stats!.inference_count, stats!.execution_count], [8, 4]);
    const index = await call(server, { path: '/v2/repository/index', body: '{}' });
    const rows = JSON.parse(index.text) as { name: string; reason?: string }[];
    assert.match(
      rows.find(({ name }) => name === 'cold')?.reason ?? '',
      /^Invalid argument: failed to run warmup sample 'zero sample': .*An Error Occurred[^;]*; .*An Error Occurred[^;]*; $/s,
    );
  } finally {
    await server.stop();
    repository.remove();
  }
});
