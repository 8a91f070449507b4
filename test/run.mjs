// The runner behind `npm test`, after the build: makes the Python environments, runs the unit tests of dist/ and the tests of
// dist-test/ two files at a time, those that measure or kill one after another, and sums up. Everything skipped is named with
// its reason; the last line is "N passed, M failed, K skipped".
//
//     node test/run.mjs [part of a file name ...]     runs only the files whose path contains one of the parts
//     NEREID_TEST_FRAMEWORKS=1                        installs torch, tensorflow and openvino, too: once, seven gigabytes
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makePythonEnv } from './support/python-env.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const FILE_MS_MAX = 5 * 60_000;
const LANES = Math.min(2, availableParallelism());
/** What looks at rates, at deadlines or at what a killed process costs the others wants the machine for itself. */
const ALONE = /\/fault\/|perf-analyzer|llama-load/;
const wanted = process.argv.slice(2);
const startedMs = Date.now();

/** @type {{ passed: number, cancelled: number, failed: { where: string, error: unknown }[], skipped: { where: string, reason: string }[] }} */
const tally = { passed: 0, cancelled: 0, failed: [], skipped: [] };

const unitTests = testFiles('dist', 'src');
const otherTests = testFiles('dist-test/test', 'test');
await preparePython('NEREID_TEST_PYTHON', {});
if (otherTests.some((file) => file.endsWith('/triton.test.js'))) {
  await preparePython('NEREID_TRITON_PYTHON', { name: 'triton-venv', requirements: 'side-by-side' });
}
if (otherTests.some((file) => file.endsWith('/frameworks.test.js'))) {
  const requirements = 'e2e/framework_models';
  const isMade = process.env.NEREID_TEST_FRAMEWORKS === '1';
  await preparePython('NEREID_FRAMEWORK_PYTHON', { name: 'framework-venv', requirements, isMade });
}
await runFiles('unit tests', unitTests, LANES);
await runFiles(
  'end-to-end tests',
  otherTests.filter((file) => !ALONE.test(file)),
  LANES,
);
await runFiles(
  'end-to-end tests, one at a time',
  otherTests.filter((file) => ALONE.test(file)),
  1,
);
summarize();

/**
 * An interpreter under this name in the environment of the tests, or NAME_REASON. One that is named already is taken.
 * @param {string} variable
 * @param {{ name?: string, requirements?: string, isMade?: boolean }} options
 */
async function preparePython(variable, { name, requirements = 'support', isMade }) {
  if (process.env[variable]) return;
  const file = join(ROOT, 'test', requirements, 'requirements.txt');
  const python = await makePythonEnv(file, { name, isMade });
  if ('python' in python) process.env[variable] = python.python;
  else process.env[`${variable}_REASON`] = python.reason;
}

/**
 * Compiled tests whose source still exists: what a deleted source left behind in the output is not run.
 * @param {string} output
 * @param {string} source
 */
function testFiles(output, source) {
  const folder = join(ROOT, output);
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.test.js'))
    .filter((name) => existsSync(join(ROOT, source, name.replace(/\.js$/, '.ts'))))
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(part)));
}

/**
 * @param {string} title
 * @param {string[]} files
 * @param {number} concurrency
 */
async function runFiles(title, files, concurrency) {
  console.log(`\n${title}: ${files.length} files`);
  if (files.length === 0) return;
  const perFile = new Map(files.map((file) => [file, { passed: 0, failed: 0, cancelled: 0, skipped: 0 }]));
  const stream = run({ files, concurrency, timeout: FILE_MS_MAX });
  stream.on('test:pass', (data) => record(data, true));
  stream.on('test:fail', (data) => record(data, false));
  stream.on('test:stderr', (data) => process.stderr.write(data.message));
  stream.on('test:stdout', (data) => process.stdout.write(data.message));
  for await (const _ of stream) {
    // The listeners above do the work; the loop waits for the end.
  }
  for (const [file, counts] of perFile) {
    const parts = Object.entries(counts).flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []));
    if (parts.length > 0) console.log(`  ${name(file)}: ${parts.join(', ')}`);
  }

  /** @param {import('node:test').EventData.TestPass | import('node:test').EventData.TestFail} data */
  function record(data, isPass) {
    // Tests of a contract suite are reported under the file of the suite.
    const file = data.file ?? data.name;
    const counts = perFile.get(file) ?? { passed: 0, failed: 0, cancelled: 0, skipped: 0 };
    perFile.set(file, counts);
    const where = `${name(data.file ?? data.name)}: ${data.name}`;
    const cause = data.details.error?.cause ?? data.details.error;
    if (data.skip !== undefined) {
      counts.skipped++;
      tally.skipped.push({ where, reason: typeof data.skip === 'string' ? data.skip : 'no reason given' });
    } else if (isPass) {
      if (data.details.type === 'suite' || data.name === data.file) return;
      counts.passed++;
      tally.passed++;
    } else if (data.details.error?.failureType === 'cancelledByParent') {
      // The hook or the time limit that ended the parent is reported by itself.
      counts.cancelled++;
      tally.cancelled++;
    } else if (data.details.error?.failureType !== 'subtestsFailed') {
      counts.failed++;
      tally.failed.push({ where, error: cause });
      console.log(`FAIL ${where}\n${indent(text(cause))}`);
    }
  }
}

/** @param {string} file */
function name(file) {
  return relative(ROOT, file)
    .replace(/^dist-test\//, '')
    .replace(/^dist\//, 'src/')
    .replace(/\.js$/, '.ts');
}

/** @param {unknown} error */
function text(error) {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** @param {string} lines */
function indent(lines) {
  return lines
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');
}

function summarize() {
  const { passed, failed, cancelled, skipped } = tally;
  const failures = failed.length + cancelled;
  if (skipped.length > 0) console.log('\nskipped:');
  for (const { where, reason } of skipped) console.log(`  ${where}\n    because ${reason}`);
  if (failed.length > 0) console.log('\nfailed:');
  for (const { where } of failed) console.log(`  ${where}`);
  if (cancelled > 0) console.log(`  ${cancelled} tests were cancelled by a failure above`);
  if (passed + failures + skipped.length === 0) {
    console.log('\nno test was found: was the project built?');
    process.exitCode = 1;
  }
  if (failures > 0) process.exitCode = 1;
  console.log(`\n${((Date.now() - startedMs) / 1000).toFixed(0)} s`);
  console.log(`${passed} passed, ${failures} failed, ${skipped.length} skipped`);
}
