// `nereid validate` as a user runs it: on the bundled models, on a repository where every model is broken in
// another way, and on single directories. The fixes it prints are followed, and then there is no problem left.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inRoot } from '../support/paths.ts';

const BUNDLED = readdirSync(inRoot('examples', 'models')).length;

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Every process a run starts inherits it, so that strays can be found. */
const MARK = `NEREID_VALIDATE_TEST=${randomUUID()}`;

function validate(...args: readonly string[]): Promise<Run> {
  const [name = '', value = ''] = MARK.split('=');
  return new Promise((resolve) => {
    const argv = [inRoot('bin', 'nereid.js'), 'validate', ...args];
    const env = { ...process.env, [name]: value };
    execFile(process.execPath, argv, { env, timeout: 120_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

/** The line of a model and the block below it. */
function sectionOf(report: string, model: string): string {
  const lines = report.split('\n');
  const start = lines.findIndex((line) => new RegExp(`^(?:ok|bad) +${model} `).test(line));
  assert.notEqual(start, -1, `no line for ${model} in:\n${report}`);
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => !line.startsWith('     '));
  return [lines[start], ...rest.slice(0, end === -1 ? rest.length : end)].join('\n');
}

const X = 'input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]';
const Y = 'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]';
const GOOD = `backend: "onnxruntime"\nmax_batch_size: 4\n${X}\n${Y}\n`;

/** Name of a model → its config, and what the report says of it. The model file is ex_plus1's: X [-1,2] → Y [-1,2]. */
const BROKEN: Readonly<Record<string, readonly [config: string, says: RegExp]>> = {
  unknown_field: [
    GOOD.replace('max_batch_size', 'max_bach_size'),
    /bad .*line 2[\s\S]*\^[\s\S]*write max_batch_size in/,
  ],
  short_datatype: [GOOD.replace('TYPE_FP32', 'FP32'), /write data_type: TYPE_FP32/],
  json: ['{ "backend": "onnxruntime" }', /looks like JSON/],
  other_name: [`name: "somebody"\n${GOOD}`, /name: "other_name"/],
  other_output: [GOOD.replace('"Y"', '"Z"'), /has no output 'Z'; 'Y' is probably meant/],
  wrong_dims: [GOOD.replaceAll('[ 2 ]', '[ -1, 2 ]'), /dims: \[ 2 \]/],
  no_batch_dims: [GOOD.replace('max_batch_size: 4', ''), /dims: \[ -1, 2 \]/],
  too_many: [
    GOOD.replace(
      X,
      X.replace(' ]\n', ' ]').replace('[ {', '[ { name: "W" data_type: TYPE_FP32 dims: [ 1 ] }, {'),
    ),
    /lists 2 inputs, the model file has 1[\s\S]*not in the file: W/,
  ],
  preferred: [`${GOOD}dynamic_batching { preferred_batch_size: [ 8 ] }`, /does not fit max_batch_size 4/],
  misspelt_backend: [GOOD.replace('onnxruntime', 'onnxrutime'), /backend: "onnxruntime"/],
  absent_version: [`${GOOD}version_policy { specific { versions: [ 7 ] } }`, /versions: \[ 1 \]/],
  absent_labels: [GOOD.replace('"Y"', '"Y" label_filename: "l.txt"'), /l\.txt cannot be read/],
  absent_file: [`${GOOD}default_model_filename: "model2.onnx"`, /mv \S+absent_file\/1\/model\.onnx/],
};

/** Models that serve, with a warning. */
const DOUBTFUL: Readonly<Record<string, readonly [config: string, says: RegExp]>> = {
  could_batch: [
    GOOD.replace('max_batch_size: 4', '').replaceAll('[ 2 ]', '[ -1, 2 ]'),
    /warning: the model could batch/,
  ],
  lone_batches: [
    `${GOOD.replace('max_batch_size: 4', 'max_batch_size: 1')}dynamic_batching { }`,
    /warning: dynamic_batching has no effect/,
  ],
  few_labels: [
    GOOD.replace('"Y"', '"Y" label_filename: "labels.txt"'),
    /labels\.txt has 1 label for 2 classes/,
  ],
};

describe('nereid validate', () => {
  let folder: string;
  let repository: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'nereid-validate-'));
    repository = join(folder, 'models');
    const source = inRoot('test', 'conformance', 'models_explicit', 'ex_plus1');
    for (const [name, [config]] of [...Object.entries(BROKEN), ...Object.entries(DOUBTFUL)]) {
      cpSync(source, join(repository, name), { recursive: true });
      writeFileSync(join(repository, name, 'config.pbtxt'), config);
    }
    writeFileSync(join(repository, 'few_labels', 'labels.txt'), 'one\n');
    // Directories that are wrong, whatever the config says.
    cpSync(join(source, '1'), join(repository, 'worded_version', 'v3'), { recursive: true });
    cpSync(join(source, '1', 'model.onnx'), join(repository, 'loose_file', 'model.onnx'));
    mkdirSync(join(repository, 'notes'));
    mkdirSync(join(repository, 'no_onnx', '1'), { recursive: true });
    writeFileSync(join(repository, 'no_onnx', '1', 'model.onnx'), 'this is no model');
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('finds nothing wrong with the bundled models', async () => {
    const { code, stdout, stderr } = await validate(inRoot('examples', 'models'));
    assert.equal(code, 0, stdout);
    assert.equal(stderr, '');
    assert.match(stdout, /^ok {3}digits +1 version, onnxruntime, batches up to 32, 2 instances$/m);
    assert.match(stdout, /^ok {3}scaler +3 versions, /m);
    assert.ok(stdout.endsWith(`\n${BUNDLED} models: ${BUNDLED} ok, 0 with problems\n`), stdout);
    assert.ok(!stdout.includes('\u001b'), 'no colours in a pipe');
  });

  test('explains every broken model of a repository', async () => {
    const { code, stdout } = await validate(repository);
    assert.equal(code, 1);
    for (const [name, [, says]] of Object.entries(BROKEN)) {
      const section = sectionOf(stdout, name);
      assert.match(section, /^bad [\s\S]*\n {5}error: [\s\S]*\n {5}fix: /, section);
      assert.match(section, says, section);
    }
    for (const [name, [, says]] of Object.entries(DOUBTFUL)) {
      assert.match(sectionOf(stdout, name), /^ok /);
      assert.match(sectionOf(stdout, name), says);
    }
    assert.match(sectionOf(stdout, 'worded_version'), /mv \S+worded_version\/v3 \S+worded_version\/3/);
    assert.match(sectionOf(stdout, 'loose_file'), /mkdir \S+loose_file\/1 && mv/);
    assert.match(sectionOf(stdout, 'notes'), /this directory is no model/);
    assert.match(sectionOf(stdout, 'no_onnx'), /damaged, cut short, or no ONNX file/);
    assert.match(stdout, /\n20 models: 3 ok, 17 with problems, 3 warnings\n$/);
  });

  test('prints fixes that work', {
    skip: process.platform === 'win32' && 'needs a POSIX shell',
  }, async () => {
    const names = ['other_name', 'other_output', 'wrong_dims', 'no_batch_dims', 'too_many'];
    names.push('misspelt_backend', 'absent_version', 'absent_file', 'worded_version', 'loose_file');
    const fixed = join(folder, 'fixed');
    for (const name of names) cpSync(join(repository, name), join(fixed, name), { recursive: true });
    let run = await validate(fixed);
    // Some models have more than one mistake, and a load stops at the first.
    for (let round = 0; round < 3 && run.code !== 0; round++) {
      for (const name of names) {
        const section = sectionOf(run.stdout, name);
        if (section.startsWith('bad')) follow(join(fixed, name), section);
      }
      run = await validate(fixed);
    }
    assert.equal(run.code, 0, run.stdout);
  });

  test('takes the directory of one model, with or without a slash', async () => {
    const { code, stdout } = await validate(`${inRoot('examples', 'models', 'digits')}/`);
    assert.equal(code, 0);
    assert.match(stdout, /^ok {3}digits {2}1 version[^\n]*\n1 model: 1 ok, 0 with problems\n$/);
  });

  test('says when there is no model', async () => {
    const nowhere = await validate(join(folder, 'nowhere'));
    assert.deepEqual([nowhere.code, nowhere.stdout], [1, `${join(folder, 'nowhere')} does not exist\n`]);
    const empty = await validate(join(repository, 'notes'));
    assert.equal(empty.code, 1);
    assert.match(empty.stdout, /holds no model\. A repository looks like this/);
    const file = await validate(join(repository, 'no_onnx', '1', 'model.onnx'));
    assert.match(file.stdout, /is a file/);
    const version = await validate(inRoot('examples', 'models', 'digits', '1'));
    assert.match(version.stdout, /is a version of a model; validate the model: nereid validate \S+digits\n/);
  });

  test('takes a directory with a loose model file for a model', async () => {
    const { code, stdout } = await validate(join(repository, 'loose_file'));
    assert.equal(code, 1);
    assert.match(sectionOf(stdout, 'loose_file'), /mkdir \S+loose_file\/1 && mv/);
  });

  test('--print-config writes configs that say the same again', async () => {
    const copy = join(folder, 'copy');
    cpSync(inRoot('examples', 'models'), copy, { recursive: true });
    const first = await validate(copy, '--print-config');
    assert.equal(first.code, 0, first.stderr);
    assert.ok(first.stderr.includes(`${BUNDLED} models: ${BUNDLED} ok`), first.stderr);
    const documents = first.stdout.split(/^# (.+\/config\.pbtxt)\n/m).slice(1);
    assert.equal(documents.length, 2 * BUNDLED);
    for (let i = 0; i < documents.length; i += 2) {
      writeFileSync(join(copy, documents[i] ?? ''), documents[i + 1] ?? '');
    }
    assert.match(readFileSync(join(copy, 'add_sub', 'config.pbtxt'), 'utf8'), /name: "INPUT0"/);
    const second = await validate(copy, '--print-config');
    assert.equal(second.code, 0, second.stderr);
    assert.equal(second.stdout, first.stdout);
  });

  test('leaves no process behind', { skip: !existsSync('/proc/self/environ') && 'needs /proc' }, () => {
    const strays = readdirSync('/proc').filter((entry) => {
      try {
        return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/environ`, 'latin1').includes(MARK);
      } catch {
        return false;
      }
    });
    assert.deepEqual(strays, []);
  });
});

/** Does what the first fix of a section says: the first command, or the first block to write. */
function follow(path: string, section: string): void {
  const typed: string[] = [];
  let isFix = false;
  for (const line of section.split('\n')) {
    if (/^ {5}\w/.test(line)) isFix = line.startsWith('     fix:');
    else if (isFix && line.startsWith('              ')) typed.push(line.trim());
    else if (typed.length > 0) break;
  }
  assert.ok(typed.length > 0, section);
  if (/^(?:mv|mkdir) /.test(typed[0] ?? '')) {
    execFileSync('sh', ['-c', typed[0] ?? '']);
    return;
  }
  const file = join(path, 'config.pbtxt');
  const config = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const field = /^\w+/.exec(typed[0] ?? '')?.[0] ?? '';
  const kept = config.split('\n').filter((line) => !line.startsWith(field));
  writeFileSync(file, `${kept.join('\n')}\n${typed.join('\n')}\n`);
}
