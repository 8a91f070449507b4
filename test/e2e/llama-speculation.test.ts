// Speculative decoding through the server: a draft model with the first layers of the target, the target as its own draft,
// and prompt lookup. Whatever is proposed, the text must be the one that the model writes without proposals. The models
// are tiny and write nonsense; skipped, with the reason, where libllama or the vocabulary cannot be had.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { writeOtherVocabulary, writeTinyLlama } from '../support/gguf-models.ts';
import {
  addLlama,
  ask,
  findGguf,
  joined,
  LlamaClient,
  metricOf,
  type Question,
  tokensOf,
} from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';

const PROMPTS = [
  'The capital of France is',
  'def fibonacci(n):\n',
  ask('Count from one to ten in words.'),
  'one two three four five six one two three four five six one two three',
];
const TOKENS_MAX = 60;
/** Metrics are sent four times a second. */
const METRICS_MS = 600;

describe('speculative decoding', { skip }, () => {
  let repository: TestRepository;
  let files: TestRepository;
  let server: RunningServer;
  const clientOf = (model: string) => new LlamaClient(server, model);
  const greedy = (prompt: string, more: object = {}): Question => ({
    text_input: prompt,
    sampling: { temperature: 0, max_tokens: TOKENS_MAX, ignore_eos: true, ...more },
  });
  const drafted = (model: string) => metricOf(server, 'nv_llm_draft_tokens_total', model);
  const accepted = (model: string) => metricOf(server, 'nv_llm_draft_accepted_tokens_total', model);

  before(async () => {
    repository = createRepository();
    files = createRepository();
    const [file, draft, other] = [files.at('model.gguf'), files.at('draft.gguf'), files.at('other.gguf')];
    writeTinyLlama(file, { vocabularyOf, layerCount: 4, tokenCount: 512, seed: 1 });
    writeTinyLlama(draft, { vocabularyOf, layerCount: 3, tokenCount: 512, seed: 1 });
    writeOtherVocabulary(other, { from: draft });
    const exact = { cache_type_k: 'f32', cache_type_v: 'f32' };
    const small = { ...exact, context_length: 512, kv_cells: 2048, max_running: 8, threads: 1 };
    addLlama(repository, { name: 'plain', file, parameters: small });
    addLlama(repository, {
      name: 'draft',
      file,
      parameters: { ...small, draft_model: draft, draft_tokens: 4 },
    });
    addLlama(repository, { name: 'own', file, parameters: { ...small, draft_model: 'model.gguf' } });
    addLlama(repository, {
      name: 'device',
      file,
      parameters: { ...small, draft_model: draft, draft_tokens: 4, device_sampling: 'true' },
    });
    // Two texts do not fit beside each other to their ends, neither in the cache of the target nor in that of the draft.
    addLlama(repository, {
      name: 'narrow',
      file,
      parameters: { ...small, context_length: 200, kv_cells: 256, draft_model: draft },
    });
    addLlama(repository, { name: 'stranger', file, parameters: { ...small, draft_model: other } });
    server = await startServer({
      repository: repository.path,
      args: ['--exit-on-error=false', '--strict-readiness=false'],
    });
  });

  after(async () => {
    await server?.stop();
    repository?.remove();
    files?.remove();
  });

  test('a draft model changes no text, one request after another', async () => {
    for (const prompt of PROMPTS) {
      const expected = await clientOf('plain').text(greedy(prompt));
      assert.equal(await clientOf('draft').text(greedy(prompt)), expected, prompt);
      assert.equal(await clientOf('own').text(greedy(prompt)), expected, prompt);
    }
    await sleep(METRICS_MS);
    assert.ok((await drafted('draft')) > 20);
    assert.ok((await accepted('draft')) > 0);
    assert.equal(await drafted('plain'), 0);
  });

  test('the model as its own draft is nearly always right', async () => {
    await clientOf('own').text(greedy(PROMPTS[0]!, { max_tokens: 90 }));
    await sleep(METRICS_MS);
    const share = (await accepted('own')) / (await drafted('own'));
    assert.ok(share > 0.98 && share <= 1, `${share} of the proposals were right`);
    const ratio = await metricOf(server, 'nv_llm_draft_acceptance_ratio', 'own');
    assert.ok(Math.abs(ratio - share) < 0.01, `${ratio} is not ${share}`);
  });

  test('several at once write what each writes alone', async () => {
    const alone = [];
    for (const prompt of PROMPTS) alone.push(await clientOf('draft').text(greedy(prompt)));
    const together = await Promise.all(PROMPTS.map((prompt) => clientOf('draft').text(greedy(prompt))));
    assert.deepEqual(together, alone);
  });

  test('lookup finds what the prompt repeats, and changes no text', async () => {
    const before = await accepted('plain');
    for (const prompt of PROMPTS) {
      const expected = await clientOf('plain').text(greedy(prompt));
      assert.equal(await clientOf('plain').text(greedy(prompt, { speculative: 'lookup' })), expected);
    }
    await sleep(METRICS_MS);
    assert.ok((await accepted('plain')) > before);
  });

  // Few candidates: a draw that falls just between two of them would differ by the last bit of a sum.
  test('sampling with a seed gives the same text with and without proposals', async () => {
    const sampling = { temperature: 0.8, top_k: 4, seed: 11, max_tokens: TOKENS_MAX, ignore_eos: true };
    const question = { text_input: PROMPTS[0]!, sampling };
    const expected = await clientOf('plain').text(question);
    assert.equal(await clientOf('draft').text(question), expected);
    assert.equal(
      await clientOf('plain').text({ ...question, sampling: { ...sampling, speculative: 'lookup' } }),
      expected,
    );
    const other = await clientOf('draft').text({ ...question, sampling: { ...sampling, seed: 12 } });
    assert.notEqual(other, expected);
  });

  test('a stream of proposals has every token once', async () => {
    const question = {
      ...greedy(PROMPTS[1]!, { logprobs: 0 }),
      return_logprobs: true,
      return_num_output_tokens: true,
    };
    const plain = await clientOf('plain').stream(question);
    const events = await clientOf('own').stream(question);
    assert.equal(joined(events), joined(plain));
    assert.deepEqual(tokensOf(events), tokensOf(plain));
    assert.ok(events.length < plain.length, 'accepted proposals come together');
    const counted = events.reduce((sum, { num_output_tokens }) => sum + Number(num_output_tokens), 0);
    assert.equal(counted, TOKENS_MAX);
  });

  test('grammars, stop strings, token limits and penalties hold within proposals', async () => {
    const cases: object[] = [
      { grammar: 'root ::= ("one" | "two" | "three") (" " ("one" | "two" | "three")){5}', ignore_eos: false },
      { ignore_eos: false },
      { stop: ['x'] },
      { stop: ['x'], include_stop_str_in_output: true },
      { max_tokens: 3 },
      { min_tokens: 30, ignore_eos: false },
      { presence_penalty: 1, frequency_penalty: 1 },
      { repetition_penalty: 1.3 },
    ];
    const answer = async (model: string, more: object) => {
      const question = { ...greedy(PROMPTS[3]!, more), return_finish_reason: true };
      const { text_output, finish_reason } = await clientOf(model).generate(question);
      return { text_output, finish_reason };
    };
    for (const more of cases) {
      const expected = await answer('plain', more);
      const name = JSON.stringify(more);
      assert.deepEqual(await answer('draft', more), expected, `draft ${name}`);
      assert.deepEqual(await answer('own', more), expected, `own ${name}`);
      assert.deepEqual(await answer('plain', { ...more, speculative: 'lookup' }), expected, `lookup ${name}`);
    }
  });

  test('two choices of one request draft side by side', async () => {
    const sampling = { temperature: 0.9, top_k: 4, seed: 5, n: 2, max_tokens: 24 };
    const question = { text_input: PROMPTS[0]!, sampling };
    const expected = await clientOf('plain').generate(question);
    const answer = await clientOf('draft').generate(question);
    assert.deepEqual(answer.text_output, expected.text_output);
    assert.notEqual(answer.text_output[0], answer.text_output[1]);
  });

  test('preempted requests go on with their own text', async () => {
    const prompts = ['The capital of France is', 'My favourite colour is', 'In the year 1900'];
    const sampling = { temperature: 0, max_tokens: 120, ignore_eos: true };
    const alone = [];
    for (const text_input of prompts) alone.push(await clientOf('narrow').text({ text_input, sampling }));
    const together = await Promise.all(
      prompts.map((text_input) => clientOf('narrow').text({ text_input, sampling })),
    );
    assert.deepEqual(together, alone);
    await sleep(METRICS_MS);
    assert.ok((await metricOf(server, 'nv_llm_preemptions_total', 'narrow')) > 0);
    assert.ok((await accepted('narrow')) > 0);
  });

  test('a draft of another vocabulary fails the load, and says why', async () => {
    const response = await fetch(`${server.httpUrl}/v2/repository/index`, { method: 'POST' });
    const index = (await response.json()) as { name: string; state?: string; reason?: string }[];
    const stranger = index.find(({ name }) => name === 'stranger');
    assert.equal(stranger?.state, 'UNAVAILABLE');
    assert.match(stranger?.reason ?? '', /other\.gguf does not share the model's vocabulary: token 300 is /);
  });

  test('tokens that the library chooses follow proposals just as ours do', async () => {
    const client = clientOf('device');
    for (const prompt of PROMPTS) {
      const expected = await clientOf('plain').text(greedy(prompt));
      assert.equal(await client.text(greedy(prompt)), expected, prompt);
      assert.equal(await client.text(greedy(prompt, { speculative: 'lookup' })), expected, prompt);
    }
    // Those that cannot be left to it run beside them.
    const mixed = [{}, { logprobs: 0 }, { presence_penalty: 1 }, { speculative: 'off' }];
    const alone = [];
    for (const more of mixed) alone.push(await clientOf('plain').text(greedy(PROMPTS[1]!, more)));
    const together = await Promise.all(mixed.map((more) => client.text(greedy(PROMPTS[1]!, more))));
    assert.deepEqual(together, alone);
  });

  test('"draft" without a draft model is refused by name', async () => {
    const { error } = await clientOf('plain').error(greedy(PROMPTS[0]!, { speculative: 'draft' }));
    assert.match(error, /sampling parameter 'speculative' is "draft", but the model has no draft_model/);
  });
});
