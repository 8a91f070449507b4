// `nereid pull` as a user runs it, against a hub on this machine: what it fetches, how it goes on after lost connections
// and after Ctrl-C, what it refuses and how it says so, and that a server serves the result.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { COMMIT, type HubFile, type ModelHub, sha256Of, startModelHub } from '../support/model-hub.ts';
import { inRoot, MAIN } from '../support/paths.ts';
import { startServer } from '../support/server.ts';

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Begins as a GGUF does; the rest is of no matter here. */
function gguf(byteLength: number, seed = 1): Buffer {
  const content = Buffer.alloc(byteLength);
  for (let index = 0; index < byteLength; index++) content[index] = (index * seed * 31) & 255;
  content.write('GGUF', 'latin1');
  return content;
}

const ONNX = readFileSync(inRoot('examples', 'models', 'add_sub', '1', 'model.onnx'));

describe('nereid pull', { timeout: 120_000 }, () => {
  let hub: ModelHub;
  let folder: string;

  before(async () => {
    hub = await startModelHub();
  });
  after(() => hub.stop());
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nereid-pull-'));
    hub.asked.length = 0;
    hub.repositories.clear();
    hub.gated.clear();
    hub.drops = { count: 0, afterByteLength: 0 };
    hub.statuses = [];
    hub.paceByteLength = undefined;
    hub.etagSuffix = '';
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const at = (...parts: string[]) => join(folder, ...parts);
  const offer = (repository: string, files: Record<string, Buffer | HubFile>) =>
    hub.repositories.set(
      repository,
      new Map(
        Object.entries(files).map(([path, file]) => [path, Buffer.isBuffer(file) ? { content: file } : file]),
      ),
    );
  const start = (args: readonly string[], env: Record<string, string> = {}) => {
    const child = spawn(process.execPath, [MAIN, 'pull', ...args, '--model-repository', folder], {
      env: { ...process.env, HF_TOKEN: '', HF_ENDPOINT: hub.endpoint, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ended = new Promise<Run>((resolve) =>
      child.once('close', (code) => resolve({ code, stdout, stderr })),
    );
    return { child, ended };
  };
  const pull = (...args: string[]) => start(args).ended;
  /** Bytes of a download that is not finished. */
  const keptOf = (name: string) =>
    statSync(at('.pull', name, 'model.gguf.part'), { throwIfNoEntry: false })?.size ?? 0;
  const ranges = () => hub.asked.filter(({ place }) => place === 'store').map(({ range }) => range);

  test('fetches the only GGUF of a repository, with a config that says where it came from', async () => {
    const model = gguf(300_000);
    offer('someone/tiny-GGUF', { 'README.md': Buffer.from('hello'), 'tiny.Q4_0.gguf': model });
    const { code, stdout, stderr } = await pull('hf:someone/tiny-GGUF');
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(readFileSync(at('tiny', '1', 'model.gguf')), model);
    const config = readFileSync(at('tiny', 'config.pbtxt'), 'utf8');
    assert.ok(
      config.startsWith(
        `# Fetched by nereid pull from ${hub.endpoint}/someone/tiny-GGUF, revision main (${COMMIT})\n`,
      ),
    );
    assert.ok(config.includes(`tiny.Q4_0.gguf, 300000 bytes, sha256 ${sha256Of(model)}\n`), config);
    assert.match(config, /^backend: "llama"$/m);
    assert.match(stdout, /checksum right/);
    // Nothing is left beside the model.
    assert.deepEqual(readdirSync(at('.pull')), []);
    const again = await pull('someone/tiny-GGUF');
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /is there already/);
    assert.equal(ranges().length, 1);
  });

  test('prefers Q4_K_M, names the others, and takes what --file, a colon or a URL says', async () => {
    offer('someone/many', {
      'm-Q2_K.gguf': gguf(100, 2),
      'm-Q4_K_M.gguf': gguf(100, 4),
      'm-Q8_0.gguf': gguf(100, 8),
      'mmproj-m-f16.gguf': gguf(100, 9),
    });
    const first = await pull('someone/many', '--name', 'a');
    assert.match(first.stdout, /others are there, for --file: m-Q2_K.gguf, m-Q8_0.gguf\n/);
    await pull('someone/many', '--name', 'b', '--file', '*Q8_0*');
    await pull('someone/many:q2_k', '--name', 'c');
    await pull(`${hub.endpoint}/someone/many/blob/main/m-Q2_K.gguf`, '--name', 'd');
    for (const [name, seed] of [
      ['a', 4],
      ['b', 8],
      ['c', 2],
      ['d', 2],
    ] as const) {
      assert.deepEqual(readFileSync(at(name, '1', 'model.gguf')), gguf(100, seed), name);
    }
    const unclear = await pull('someone/many', '--name', 'e', '--file', 'Q');
    assert.equal(unclear.code, 1);
    assert.match(
      unclear.stderr,
      /'Q' fits several files; choose one with --file:\n {2}m-Q2_K\.gguf {2}100 B\n/,
    );
    assert.ok(!existsSync(at('e')));
  });

  test('fetches all parts of a split GGUF and names the first in the config', async () => {
    offer('someone/split', {
      'q8/big-00001-of-00003.gguf': gguf(1000, 1),
      'q8/big-00002-of-00003.gguf': gguf(1000, 2),
      'q8/big-00003-of-00003.gguf': gguf(500, 3),
    });
    const { code, stderr } = await pull('someone/split');
    assert.equal(code, 0, stderr);
    assert.deepEqual(readdirSync(at('split', '1')).sort(), [
      'model-00001-of-00003.gguf',
      'model-00002-of-00003.gguf',
      'model-00003-of-00003.gguf',
    ]);
    assert.deepEqual(readFileSync(at('split', '1', 'model-00003-of-00003.gguf')), gguf(500, 3));
    const config = readFileSync(at('split', 'config.pbtxt'), 'utf8');
    assert.match(config, /key: "model_file" value \{ string_value: "model-00001-of-00003.gguf" \}/);
  });

  test('goes on after lost connections with ranges, and after errors of the server', async () => {
    const model = gguf(500_000);
    offer('someone/flaky', { 'm.gguf': model });
    const isTaken = () => keptOf('flaky') === (2 - hub.drops.count) * 100_000;
    hub.drops = { count: 2, afterByteLength: 100_000, isTaken };
    hub.statuses = [503];
    const { code, stdout, stderr } = await pull('someone/flaky');
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(readFileSync(at('flaky', '1', 'model.gguf')), model);
    assert.match(stdout, /the server answered 503; trying again in 1 s/);
    assert.deepEqual(ranges(), [undefined, undefined, 'bytes=100000-', 'bytes=200000-']);
  });

  test('Ctrl-C keeps what is there, and the next run goes on with it', async () => {
    const model = gguf(400_000);
    offer('someone/slow', { 'm.gguf': model });
    hub.paceByteLength = 2_000;
    const { child, ended } = start(['someone/slow']);
    while (keptOf('slow') === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    child.kill('SIGINT');
    const stopped = await ended;
    assert.equal(stopped.code, 130);
    assert.match(stopped.stdout, /stopped\. What was fetched is kept; the same command goes on with it/);
    assert.ok(!existsSync(at('slow')));
    const kept = keptOf('slow');
    assert.ok(kept > 0 && kept < model.length);
    hub.paceByteLength = undefined;
    const { code, stdout } = await pull('someone/slow');
    assert.equal(code, 0, stdout);
    assert.deepEqual(ranges(), [undefined, `bytes=${kept}-`]);
    assert.deepEqual(readFileSync(at('slow', '1', 'model.gguf')), model);
  });

  test('a plain URL is continued only while the file is the same', async () => {
    const old = gguf(200_000, 3);
    offer('files/here', { 'net.gguf': old });
    const url = `${hub.storeUrl}/files/here/net.gguf?signature=secret`;
    hub.drops = { count: 1, afterByteLength: 50_000, isTaken: () => keptOf('net') === 50_000 };
    hub.paceByteLength = 1_000;
    const { child, ended } = start([url, '--name', 'net']);
    while (hub.asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    child.kill('SIGINT');
    await ended;
    // With the old tag, then with that of another file.
    assert.match(hub.asked[1]?.ifRange ?? '', /^"[0-9a-f]{16}"$/);
    const changed = gguf(200_000, 5);
    offer('files/here', { 'net.gguf': changed });
    hub.paceByteLength = undefined;
    const { code, stdout, stderr } = await pull(
      url,
      '--name',
      'net',
      `--sha256=${sha256Of(changed).toUpperCase()}`,
    );
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(readFileSync(at('net', '1', 'model.gguf')), changed);
    assert.ok(!readFileSync(at('net', 'config.pbtxt'), 'utf8').includes('secret'));
  });

  test('a wrong checksum removes the file and leaves no model', async () => {
    offer('someone/wrong', { 'm.gguf': { content: gguf(1000), sha256: 'a'.repeat(64) } });
    const { code, stderr } = await pull('someone/wrong');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /m\.gguf has the wrong checksum; what was fetched is removed\n {2}sha256 [0-9a-f]{64}\n {2}should be a{64}/,
    );
    assert.ok(!existsSync(at('wrong')));
    assert.ok(!existsSync(at('.pull', 'wrong', 'model.gguf.part')));
    const given = await pull('someone/wrong', `--sha256=${'b'.repeat(64)}`);
    assert.match(given.stderr, /has the wrong checksum at the hub/);
  });

  test('a file that is no model is refused', async () => {
    offer('someone/page', { 'm.gguf': { content: Buffer.from('<html>sign in</html>'), sha256: undefined } });
    const { code, stderr } = await pull('someone/page');
    assert.equal(code, 1);
    assert.match(stderr, /m\.gguf is no GGUF file: it begins with "<html>si"/);
    assert.ok(!existsSync(at('page')));
  });

  test('says what to do about closed repositories, and sends the token to the hub alone', async () => {
    offer('someone/gated', { 'm.gguf': gguf(100) });
    hub.gated.set('someone/gated', 'hf_right');
    const closed = await pull('someone/gated');
    assert.equal(closed.code, 1);
    assert.match(closed.stderr, /someone\/gated is not open \(401\): .*set HF_TOKEN or accept the licence/);
    const other = await start(['someone/gated'], { HF_TOKEN: 'hf_wrong' }).ended;
    assert.match(other.stderr, /\(403\): the token may not read it: accept the licence/);
    const { code, stderr } = await start(['someone/gated'], { HF_TOKEN: 'hf_right' }).ended;
    assert.equal(code, 0, stderr);
    const store = hub.asked.filter(({ place }) => place === 'store');
    assert.deepEqual(
      store.map(({ authorization }) => authorization),
      [undefined],
    );
    assert.ok(hub.asked.some(({ authorization }) => authorization === 'Bearer hf_right'));
  });

  test('says what there is when the wanted is not', async () => {
    offer('someone/few', { 'a.gguf': gguf(100), 'notes.txt': Buffer.from('x') });
    const file = await pull('someone/few', '--file', 'b.gguf');
    assert.match(
      file.stderr,
      /no model file that fits 'b\.gguf'\. It has:\n {2}a\.gguf {2}100 B\n {2}notes\.txt {2}1 B\n/,
    );
    assert.match((await pull('someone/few', '--revision=v9')).stderr, /someone\/few has no revision 'v9'/);
    assert.match((await pull('someone/nothing')).stderr, /has no model repository 'someone\/nothing'/);
    assert.match((await pull(`${hub.storeUrl}/files/here/none.gguf`)).stderr, /none\.gguf does not exist/);
    assert.match((await pull('no source')).stderr, /'no source' is no source/);
    for (const { code } of [file]) assert.equal(code, 1);
  });

  test('an existing model is replaced by --force alone, and its config is kept', async () => {
    offer('someone/m', { 'm.gguf': gguf(100, 1) });
    await pull('someone/m');
    writeFileSync(at('m', 'config.pbtxt'), 'backend: "llama"\n# mine\n');
    offer('someone/m', { 'm.gguf': gguf(200, 2) });
    const refused = await pull('someone/m');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /exists already; --force replaces it, --name gives the model another name/);
    assert.equal(statSync(at('m', '1', 'model.gguf')).size, 100);
    const { code, stdout, stderr } = await pull('someone/m', '--force');
    assert.equal(code, 0, stdout + stderr);
    assert.equal(statSync(at('m', '1', 'model.gguf')).size, 200);
    assert.equal(readFileSync(at('m', 'config.pbtxt.before-pull'), 'utf8'), 'backend: "llama"\n# mine\n');
  });

  test('an ONNX model is served, while a pull is under way beside it', async () => {
    offer('someone/adder', {
      'onnx/model.onnx': { content: ONNX, sha256: undefined },
      'onnx/model.onnx_data': Buffer.from('weights'),
      'onnx/model_fp16.onnx': ONNX,
    });
    offer('someone/slow', { 'm.gguf': gguf(400_000) });
    const { code, stdout, stderr } = await pull('someone/adder', '--name=adder');
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(readdirSync(at('adder', '1')).sort(), ['model.onnx', 'model.onnx_data']);
    hub.paceByteLength = 1_000;
    const slow = start(['someone/slow']);
    while (!existsSync(at('.pull', 'slow'))) await new Promise((resolve) => setTimeout(resolve, 10));
    const server = await startServer({ repository: folder });
    try {
      const meta = await (await fetch(`${server.httpUrl}/v2/models/adder`)).json();
      const inputs = (meta as { inputs: { name: string; datatype: string; shape: number[] }[] }).inputs;
      assert.equal(inputs.length, 2);
      const body = {
        inputs: inputs.map(({ name, shape, datatype }, index) => {
          const dims = shape.map((dim) => (dim < 0 ? 1 : dim));
          const count = dims.reduce((product, dim) => product * dim, 1);
          return {
            name,
            datatype,
            shape: dims,
            data: Array<number>(count).fill(index + 1),
          };
        }),
      };
      const answer = await fetch(`${server.httpUrl}/v2/models/adder/infer`, {
        method: 'POST',
        body: JSON.stringify(body),
      });
      const { outputs } = (await answer.json()) as { outputs: { data: number[] }[] };
      assert.deepEqual(outputs.map((output) => Math.abs(output.data[0] ?? 0)).sort(), [1, 3]);
      const index = await fetch(`${server.httpUrl}/v2/repository/index`, { method: 'POST' });
      assert.deepEqual(
        ((await index.json()) as { name: string }[]).map(({ name }) => name),
        ['adder'],
      );
    } finally {
      await server.stop();
      slow.child.kill('SIGTERM');
      assert.equal((await slow.ended).code, 143);
    }
  });

  test('two pulls of one model do not meet', async () => {
    offer('someone/slow', { 'm.gguf': gguf(400_000) });
    hub.paceByteLength = 1_000;
    const first = start(['someone/slow']);
    while (!existsSync(at('.pull', 'slow', 'lock'))) await new Promise((resolve) => setTimeout(resolve, 10));
    const second = await pull('someone/slow');
    assert.equal(second.code, 1);
    assert.match(second.stderr, new RegExp(`process ${first.child.pid} is fetching this model already`));
    first.child.kill('SIGINT');
    await first.ended;
  });
});
