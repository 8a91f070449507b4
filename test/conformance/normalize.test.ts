// The comparison itself: a recorded answer equals itself, and a change in what counts is seen. Without this a rule
// that takes out too much would make every case pass.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Case, readCases } from './cases.ts';
import { differences } from './differences.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { normalAnswer } from './normalize.ts';

const cases = readCases();

function differencesTo(one: Case, step: number, answer: JsonObject): string[] {
  const { request, response, compare } = one.steps[step]!;
  const earlier = compare.delta_from === undefined ? undefined : one.steps[compare.delta_from]?.response;
  const options = { compare, earlier, modelsHeld: new Set<string>() };
  const want = normalAnswer(request, response, options);
  return differences(want, normalAnswer(request, answer, options)).map(({ path }) => path);
}

function caseOf(id: string): Case {
  const found = cases.find((one) => one.id === id);
  assert.ok(found, `${id} is no case`);
  return found;
}

/** A copy with the value at the path replaced. */
function changed(value: Json, path: readonly (string | number)[], to: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return to;
  if (Array.isArray(value)) return value.map((inner, i) => (i === key ? changed(inner, rest, to) : inner));
  assert.ok(isObject(value));
  return { ...value, [key]: changed(value[key] ?? null, rest, to) };
}

describe('the comparison of answers', () => {
  test('finds no difference between a recorded answer and itself', () => {
    for (const one of cases) {
      for (const [step, { response }] of one.steps.entries()) {
        assert.deepEqual(differencesTo(one, step, structuredClone(response)), [], one.id);
      }
    }
  });

  const changes: ReadonlyArray<readonly [string, number, readonly (string | number)[], Json]> = [
    ['errors-shape.grpc.nobatch_wrong', 0, ['code'], 'INTERNAL'],
    ['errors-shape.grpc.nobatch_wrong', 0, ['details'], 'another text'],
    ['infer-contents.grpc.compressed', 0, ['message', 'raw_output_contents', 0], 'AAAA'],
    ['infer-contents.grpc.compressed', 0, ['message', 'outputs', 0, 'shape', 1], 4n],
    ['decoupled.grpc.error_then_ok', 0, ['messages', 0, 'error_message'], 'another text'],
    ['config.grpc.priority', 0, ['message', 'config', 'max_batch_size'], 99n],
    ['generate_stream.http.tokens', 0, ['events', 0], {}],
    ['generate_stream.http.tokens', 0, ['headers', 'content-type'], 'text/plain'],
  ];
  for (const [id, step, path, to] of changes) {
    test(`sees a change of ${path.join('.')} in ${id}`, () => {
      const one = caseOf(id);
      const answer = changed(one.steps[step]!.response, path, to);
      assert.ok(isObject(answer));
      assert.notEqual(differencesTo(one, step, answer).length, 0);
    });
  }

  test('sees a counter that went up once too often', () => {
    const one = caseOf('stats.grpc.decoupled');
    const step = one.steps.findIndex(({ compare }) => compare.delta_from !== undefined);
    const path = ['message', 'model_stats', 0, 'execution_count'];
    const answer = changed(one.steps[step]!.response, path, 1_000_000n);
    assert.ok(isObject(answer));
    assert.equal(differencesTo(one, step, answer).length, 1);
  });

  test('takes the answers of a stream to different requests in any order', () => {
    const one = caseOf('decoupled.grpc.error_then_ok');
    const { response } = one.steps[0]!;
    assert.ok(Array.isArray(response.messages));
    const answer = { ...response, messages: response.messages.toReversed() };
    assert.deepEqual(differencesTo(one, 0, answer), []);
  });
});
