// Tidiness as a test: the import table of ARCHITECTURE.md, file names, lengths and openings, and words that must
// not be in the repository. A rule that cannot be checked here is not a rule.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, posix } from 'node:path';
import { describe, test } from 'node:test';
import { inRoot } from './support/paths.ts';

/** room → what it may import besides itself; "wire/pbtxt" is that folder alone. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  domain: ['lib'],
  wire: ['domain', 'lib'],
  backend: ['domain', 'lib'],
  backends: ['backend', 'domain', 'lib'],
  instance: ['backend', 'domain', 'lib'],
  hosts: ['instance', 'domain', 'lib'],
  core: ['instance', 'wire/pbtxt', 'domain', 'lib'],
  frontend: ['core', 'wire', 'domain', 'lib'],
  cli: ['domain', 'lib'],
  pull: ['domain', 'lib'],
  client: ['wire', 'domain', 'lib'],
  perf: ['client', 'domain', 'lib'],
  analyzer: ['client', 'domain', 'lib'],
};
/** These put the rooms together and see all of them. */
const ENTRIES = [
  'src/main.ts',
  'src/server.ts',
  'src/host.ts',
  'src/host-command.ts',
  'src/memory-host.ts',
  'src/pull-command.ts',
  'src/startup-tables.ts',
  'src/validate-command.ts',
];
/** Folders of these rooms are strangers to each other; index.ts of such a room lists them. */
const ROOMS_OF_STRANGERS = ['backends', 'frontend'];
const LINES_MAX = 350;
/** A list of cases may be long where code may not. */
const TEST_LINES_MAX = 700;
const LINES_EXCEPTIONS: readonly string[] = [];
const VAGUE_NAME = /^(?:utils?|helpers?|common|misc|manager)$/;

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

function readTree(folder: string, pattern: RegExp): SourceFile[] {
  return readdirSync(inRoot(folder), { recursive: true, encoding: 'utf8' })
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
    .filter((path) => pattern.test(path))
    .map((path) => ({ path, text: readFileSync(inRoot(path), 'utf8') }));
}

const sources = readTree('src', /\.ts$/);
const ours = [...sources, ...readTree('test', /\.(?:ts|mjs)$/)];

/** Comments say "any" and "skip" freely; rules about code look at what is left without them. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

function complaints(files: readonly SourceFile[], check: (file: SourceFile) => string | undefined): string[] {
  return files.flatMap((file) => {
    const complaint = check(file);
    return complaint === undefined ? [] : [`${file.path}: ${complaint}`];
  });
}

function lineOf(text: string, pattern: RegExp): string | undefined {
  const at = text.search(pattern);
  if (at < 0) return undefined;
  const number = text.slice(0, at).split('\n').length;
  return `line ${number}: ${text.split('\n')[number - 1]?.trim().slice(0, 120)}`;
}

describe('imports', () => {
  test('go only where the table allows', () => {
    const wrong = sources.flatMap(({ path, text }) =>
      importsOf(path, text)
        .filter((target) => !isImportAllowed(path, target))
        .map((target) => `${path} imports ${target}`),
    );
    assert.deepEqual(wrong, []);
  });

  test('every folder of src is a room of the table', () => {
    const folders = new Set(
      sources.map(({ path }) => path.split('/')[1] ?? '').filter((name) => !name.endsWith('.ts')),
    );
    assert.deepEqual(
      [...folders].filter((name) => ROOMS[name] === undefined),
      [],
    );
    const loose = sources.map(({ path }) => path).filter((path) => path.split('/').length === 2);
    assert.deepEqual(
      loose.filter((path) => !ENTRIES.includes(path)),
      [],
    );
  });

  test('the table is the one in ARCHITECTURE.md', () => {
    const page = readFileSync(inRoot('ARCHITECTURE.md'), 'utf8');
    const table = /<!-- rooms:begin -->\n([\s\S]*?)<!-- rooms:end -->/.exec(page)?.[1] ?? '';
    const rows = table.split('\n').flatMap((line) => {
      const [, room, , allowed] = line.split('|').map((cell) => cell.trim());
      const names = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '');
      const [name] = names(room);
      return name === undefined ? [] : [[name, names(allowed)] as const];
    });
    assert.deepEqual(Object.fromEntries(rows), ROOMS);
  });
});

/** Paths below src/ of the project's own files that a file imports. */
function importsOf(path: string, text: string): string[] {
  const specifiers = withoutComments(text).matchAll(/(?:\bfrom|\bimport|\bimport\()\s*['"](\.[^'"]+)['"]/g);
  return [...specifiers].map((match) => posix.join(posix.dirname(path), match[1] ?? ''));
}

function isImportAllowed(path: string, target: string): boolean {
  if (ENTRIES.includes(path)) return true;
  const [, room = '', folder] = path.split('/');
  const [, targetRoom = '', targetFolder] = target.split('/');
  if (room !== targetRoom) {
    return (ROOMS[room] ?? []).some(
      (allowed) => target === `src/${allowed}` || target.startsWith(`src/${allowed}/`),
    );
  }
  const isStranger = ROOMS_OF_STRANGERS.includes(room) && folder !== targetFolder;
  // Tests may look over to a neighbour inside their own room, but never out of the room's row.
  return (
    !isStranger ||
    path.endsWith('.test.ts') ||
    folder === 'index.ts' ||
    (targetFolder?.endsWith('.ts') ?? false)
  );
}

describe('files', () => {
  test('of src open with a comment that says what they own', () => {
    const owners = sources.filter(({ path }) => !path.endsWith('.test.ts'));
    const bare = owners.filter(({ text }) => !/^(?:#!.*\n)?(?:\/\/ |\/\*)/.test(text));
    assert.deepEqual(
      bare.map(({ path }) => path),
      [],
    );
  });

  test('have kebab-case names that say something', () => {
    const wrong = ours.filter(({ path }) => {
      const stem = basename(path).replace(/(?:\.test|\.case)?\.(?:ts|mjs)$/, '');
      const isVague = [stem, ...dirname(path).split('/')].some((part) => VAGUE_NAME.test(part));
      return isVague || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(stem);
    });
    assert.deepEqual(
      wrong.map(({ path }) => path),
      [],
    );
  });

  test(`are shorter than ${LINES_MAX} lines, lists of test cases than ${TEST_LINES_MAX}`, () => {
    const long = complaints(ours, ({ path, text }) => {
      const lines = text.split('\n').length;
      const linesMax = path.endsWith('.test.ts') ? TEST_LINES_MAX : LINES_MAX;
      return lines < linesMax || LINES_EXCEPTIONS.includes(path) ? undefined : `${lines} lines`;
    });
    assert.deepEqual(long, []);
  });
});

describe('code', () => {
  test('has no any', () => {
    const pattern = /(?:[:<,|&(]|\bas|=>)\s*any\b(?=\s*(?:[\][>;,)=|&}{]|$))/m;
    assert.deepEqual(
      complaints(ours, ({ text }) => lineOf(withoutComments(text), pattern)),
      [],
    );
  });

  test('has no enum, and no class that extends anything but Error', () => {
    const pattern = /^\s*(?:export )?(?:const )?enum \w|\bclass \w+ extends (?!\w*Error\b)\w/m;
    assert.deepEqual(
      complaints(sources, ({ text }) => lineOf(withoutComments(text), pattern)),
      [],
    );
  });

  test('has nothing left to do later', () => {
    const pattern = new RegExp(
      `\\b(?:${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')}|${['XX', 'X'].join('')})\\b`,
    );
    assert.deepEqual(
      complaints(ours, ({ text }) => lineOf(text, pattern)),
      [],
    );
  });

  test('skips no test without a reason', () => {
    // A reason is a text, or a variable that holds one; `test.skip(...)` has no place for it.
    const pattern = /\b(?:test|it|describe|suite)\.(?:skip|only)\s*\(|\bt\.skip\(\s*\)|\bskip:\s*true\b/;
    const files = ours.filter(({ path }) => path !== 'test/tidy.test.ts');
    assert.deepEqual(
      complaints(files, ({ text }) => lineOf(withoutComments(text), pattern)),
      [],
    );
  });
});

describe('the repository', () => {
  const tracked = trackedFiles();

  test('names no machine', { skip: tracked === undefined && 'this is no git checkout' }, () => {
    // Written in pieces, so that this file does not contain what it forbids.
    const folders = ['ro' + 'ot', 'wo' + 'rk', 'ho' + 'me/[a-z]+'].join('|');
    const hosts = [
      'regis' + 'try\\.npm',
      'artifac' + 'tory',
      'nex' + 'us\\.',
      '\\bpypi\\.(?!org)\\w+\\.',
    ].join('|');
    const pattern = new RegExp(`(?<![\\w.}~*-])/(?:${folders})/|(?:${hosts})`);
    const texts = (tracked ?? []).flatMap((path) => {
      const data = readFileSync(inRoot(path));
      return data.includes(0) ? [] : [{ path, text: data.toString('utf8') }];
    });
    assert.deepEqual(
      complaints(texts, ({ text }) => lineOf(text, pattern)),
      [],
    );
  });
});

/** Tracked files and those about to be; undefined outside a git checkout. */
function trackedFiles(): string[] | undefined {
  try {
    const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
      cwd: inRoot(),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const deleted = execFileSync('git', ['ls-files', '-d', '-z'], { cwd: inRoot(), encoding: 'utf8' }).split(
      '\0',
    );
    return list.split('\0').filter((path) => path !== '' && !deleted.includes(path));
  } catch {
    return undefined;
  }
}
