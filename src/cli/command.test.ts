// Subcommands, help and version, and the flag table that the usage is made from.
// Nothing is started here.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVersion } from '../lib/version.ts';
import { parseCommand } from './command.ts';
import { FLAG_GROUPS } from './flag-table.ts';
import { flagNames } from './flags.ts';
import { usageText } from './usage.ts';

test('serve is the default command', () => {
  for (const argv of [['--model-repository=/m'], ['serve', '--model-repository', '/m']]) {
    const command = parseCommand(argv);
    assert.ok(command.kind === 'serve');
    assert.deepEqual(command.options.repository.paths, ['/m']);
  }
});

test('help and version are found anywhere', () => {
  assert.deepEqual(parseCommand(['help']), { kind: 'help' });
  assert.deepEqual(parseCommand(['--model-repository=/m', '--help']), { kind: 'help' });
  assert.deepEqual(parseCommand(['-h']), { kind: 'help' });
  assert.deepEqual(parseCommand(['--version']), { kind: 'version' });
});

test('validate takes one directory', () => {
  assert.deepEqual(parseCommand(['validate', 'models', '--print-config']), {
    kind: 'validate',
    directory: 'models',
    isPrintConfig: true,
    backendDirectory: undefined,
  });
  assert.deepEqual(parseCommand(['validate', '--backend-directory=/backends', 'models']), {
    kind: 'validate',
    directory: 'models',
    isPrintConfig: false,
    backendDirectory: '/backends',
  });
  assert.throws(() => parseCommand(['validate']), /needs the directory/);
  assert.throws(() => parseCommand(['validate', 'a', 'b']), /Unexpected argument: b/);
  assert.throws(() => parseCommand(['validate', '--foo']), /Unexpected argument: --foo/);
});

test('pull takes a source and its flags in both forms', () => {
  const command = parseCommand(['pull', 'o/n', '--name=x', '--model-repository', 'repo', '--force']);
  assert.ok(command.kind === 'pull');
  assert.deepEqual(command.options, {
    source: 'o/n',
    repository: 'repo',
    name: 'x',
    file: undefined,
    revision: undefined,
    token: undefined,
    sha256: undefined,
    isForced: true,
  });
  const other = parseCommand(['pull', 'http://a/b.gguf?x=1', `--sha256=${'AB'.repeat(32)}`]);
  assert.ok(other.kind === 'pull' && other.options.repository === 'models');
  assert.equal(other.options.sha256, 'ab'.repeat(32));
  assert.throws(() => parseCommand(['pull']), /pull needs a source/);
  assert.throws(() => parseCommand(['pull', 'a', 'b']), /Unexpected argument: b/);
  assert.throws(() => parseCommand(['pull', 'a', '--revison=1']), /Did you mean --revision\?/);
  assert.throws(() => parseCommand(['pull', 'a', '--name']), /--name needs a value/);
  assert.throws(() => parseCommand(['pull', 'a', '--sha256=12']), /64 hexadecimal digits/);
});

test('a mistyped command is answered with a guess', () => {
  assert.throws(
    () => parseCommand(['validat', 'x']),
    /^UsageError: Unexpected argument: validat\nDid you mean validate\?/,
  );
});

test('the usage names every flag, in lines that fit', () => {
  const text = usageText();
  for (const name of flagNames()) assert.ok(text.includes(`  --${name}`), name);
  for (const line of text.split('\n')) assert.ok(line.length <= 110, line);
});

test('no flag is in the table twice', () => {
  const names = FLAG_GROUPS.flatMap((group) => group.flags.map((flag) => flag.name));
  assert.deepEqual(names, [...new Set(names)]);
  assert.ok(names.length > 90);
});

test('the version is that of package.json', () => {
  assert.match(readVersion(), /^\d+\.\d+\.\d+/);
});
