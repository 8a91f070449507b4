// What counts as a source, and which name its model gets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModelName, defaultNameOf, parseSource } from './source.ts';

const HUB = 'https://hub.example:8443/mirror';

test('repositories are named in words and by the URLs of the hub', () => {
  const hub = { kind: 'hub', repository: 'o/n.x', revision: undefined, pattern: undefined };
  for (const text of ['o/n.x', 'hf:o/n.x', 'hf://o/n.x', `${HUB}/o/n.x`, 'https://huggingface.co/o/n.x/']) {
    assert.deepEqual(parseSource(text, HUB), hub, text);
  }
  assert.deepEqual(parseSource('o/n.x:Q8_0', HUB), { ...hub, pattern: 'Q8_0' });
  assert.deepEqual(parseSource(`${HUB}/o/n.x/tree/v2`, HUB), { ...hub, revision: 'v2' });
  assert.deepEqual(parseSource(`${HUB}/o/n.x/resolve/v2/a/b%20c.gguf?download=true`, HUB), {
    ...hub,
    revision: 'v2',
    pattern: 'a/b c.gguf',
  });
});

test('any other URL is a file', () => {
  for (const text of ['http://files.example/m.onnx', `${HUB}/api/models/o/n/x`, 'https://huggingface.co/o']) {
    const source = parseSource(text, HUB);
    assert.ok(source.kind === 'url' && source.url.href === text, text);
  }
});

test('anything else is refused with words', () => {
  for (const text of ['', 'word', 'a/b/c', '../..', './x', 'ftp://a/b.gguf', 'a b/c']) {
    assert.throws(() => parseSource(text, HUB), /is no source\. Give a repository/, text);
  }
  assert.throws(() => parseSource('http://', HUB), /is no URL/);
});

test('the name of the model is that of the source without its format', () => {
  const names = [
    ['o/Tiny-GGUF', 'Tiny'],
    ['o/bert.onnx', 'bert'],
    ['https://files.example/a/m-q8.gguf', 'm-q8'],
    ['https://files.example/big-00001-of-00002.gguf', 'big'],
    ['o/gguf', 'gguf'],
  ] as const;
  for (const [source, name] of names) assert.equal(defaultNameOf(parseSource(source, HUB)), name);
  for (const name of ['', '.hidden', 'a/b', 'a b', '..']) {
    assert.throws(() => checkModelName(name), /cannot be the name of a model/);
  }
  assert.equal(checkModelName('a.b-c'), 'a.b-c');
});
