// Stop strings against a search over the whole text, for every way of cutting it that a seed gives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPrng } from '../../../lib/prng.ts';
import { StopStrings } from './stop-strings.ts';

test('holds back only what could begin a stop string', () => {
  const stops = new StopStrings(['END'], { isIncluded: false });
  assert.deepEqual(stops.push('text E'), { text: 'text ', stop: null });
  assert.deepEqual(stops.push('N'), { text: '', stop: null });
  assert.deepEqual(stops.push('T E'), { text: 'ENT ', stop: null });
  assert.deepEqual(stops.push('ND and more'), { text: '', stop: 'END' });
  assert.deepEqual(stops.push('more'), { text: '', stop: null });
});

test('gives the stop string out when asked to', () => {
  const stops = new StopStrings(['\n\n'], { isIncluded: true });
  assert.equal(stops.push('a\n').text, 'a');
  assert.deepEqual(stops.push('\nb'), { text: '\n\n', stop: '\n\n' });
});

test('gives the rest at the end', () => {
  const stops = new StopStrings(['abc'], { isIncluded: false });
  assert.equal(stops.push('xab').text, 'x');
  assert.equal(stops.flush(), 'ab');
});

test('passes everything where there is nothing to stop at', () => {
  assert.deepEqual(new StopStrings([], { isIncluded: false }).push('abc'), { text: 'abc', stop: null });
});

/** What comes out when the text is read one unit after the other. */
function expected(text: string, stops: readonly string[], isIncluded: boolean) {
  for (let end = 1; end <= text.length; end++) {
    const hits = stops.filter((stop) => text.slice(0, end).endsWith(stop));
    const hit = hits.sort((a, b) => b.length - a.length)[0];
    if (hit !== undefined) return { text: text.slice(0, isIncluded ? end : end - hit.length), stop: hit };
  }
  return { text, stop: null };
}

test('the answer does not depend on where the text was cut', () => {
  const random = createPrng(5);
  const word = (length: number) => Array.from({ length }, () => random.pick(['a', 'b', 'é', '😀'])).join('');
  for (let round = 0; round < 3000; round++) {
    const stops = Array.from({ length: random.integer(1, 4) }, () => word(random.integer(1, 4)));
    const characters = [...word(random.integer(0, 20))];
    const isIncluded = random.boolean();
    const search = new StopStrings(stops, { isIncluded });
    let text = '';
    let stop: string | null = null;
    for (let at = 0; at < characters.length && stop === null; ) {
      const length = random.integer(1, 5);
      const result = search.push(characters.slice(at, at + length).join(''));
      at += length;
      text += result.text;
      stop = result.stop;
    }
    if (stop === null) text += search.flush();
    assert.deepEqual({ text, stop }, expected(characters.join(''), stops, isIncluded), `round ${round}`);
  }
});
