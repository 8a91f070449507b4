// Greedy text against libllama run alone with one sequence, token for token. What holds is not the same everywhere:
//
// - One request at a time, with the prefix cache or without: equal. Reused: equal for prompts of fewer than 64 tokens.
// - Many at once, in steps of fewer than 64 rows and while nobody has left: equal, to the last bit of the logits.
// - Otherwise libllama's own arithmetic differs: it takes another attention kernel for a step of 64 rows or more, and adds
//   up a sequence's cells in the order in which they lie, which holes left by others change. The sums are rounded to 16
//   bits and feed 8-bit activations, so logits move: by 0.2 on average and by 1.8 at most where libllama's plain batch was
//   compared with its single sequence, nothing of ours around it. A text may take another path only where the next
//   best token was near; 0.3 is the widest gap seen.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  addLlama,
  findGguf,
  LlamaClient,
  metricOf,
  type Output,
  PROMPTS,
  type Question,
  tokensOf,
} from '../support/llama.ts';
import { type Generated, generateAlone } from '../support/llama-alone.ts';
import { waitUntil } from '../support/load.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const TOKENS_MAX = 24;
/** In the batches that are to be equal: nobody ends early, so that there are no holes. */
const TOKENS_IN_STEP = 12;
/** Below this the two best tokens count as equally good; logits have a standard deviation of 3.6. */
const MARGIN_MAX = 1;

const gguf = await findGguf();
const SAMPLING = { temperature: 0, max_tokens: TOKENS_MAX };

describe('greedy text of a llama model', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let alone: Generated[];

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const { file } = gguf;
    const base = { threads: 1, context_length: 512 };
    addLlama(repository, { name: 'cached', file, parameters: base });
    addLlama(repository, { name: 'plain', file, parameters: { ...base, prefix_cache: 'false' } });
    addLlama(repository, { name: 'small_steps', file, parameters: { ...base, step_tokens: 63 } });
    addLlama(repository, {
      name: 'three_contexts',
      file,
      parameters: { ...base, step_tokens: 63, contexts: 3 },
    });
    addLlama(repository, {
      name: 'tiny_cache',
      file,
      parameters: { ...base, context_length: 64, kv_cells: 64, prefill_chunk: 16 },
    });
    alone = await generateAlone({ file, prompts: PROMPTS, tokensMax: TOKENS_MAX });
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  function question(prompt: string, sampling: Readonly<Record<string, unknown>> = SAMPLING): Question {
    return { text_input: prompt, sampling, return_logprobs: true, return_finish_reason: true };
  }

  async function oneByOne(model: string): Promise<Output[]> {
    const client = new LlamaClient(server, model);
    const outputs: Output[] = [];
    for (const prompt of PROMPTS) outputs.push(await client.generate(question(prompt)));
    return outputs;
  }

  function atOnce(model: string): Promise<Output[]> {
    const client = new LlamaClient(server, model);
    return Promise.all(PROMPTS.map((prompt) => client.generate(question(prompt))));
  }

  function requireEqual(outputs: readonly Output[]): void {
    outputs.forEach((output, i) => {
      const expected = alone[i]!;
      assert.deepEqual(tokensOf([output]), expected.tokens, PROMPTS[i]);
      assert.equal(output.text_output, expected.text);
      assert.equal(output.finish_reason, expected.isEnded ? 'stop' : 'length');
    });
  }

  /** Equal up to a token that was nearly as good as the best. Returns how many were equal to the end. */
  function requireNear(outputs: readonly Output[]): number {
    let equalCount = 0;
    for (const [i, output] of outputs.entries()) {
      const tokens = tokensOf([output]);
      const expected = alone[i]!;
      const at = expected.tokens.findIndex((token, place) => token !== tokens[place]);
      if (at < 0) {
        assert.equal(tokens.length, expected.tokens.length);
        equalCount++;
        continue;
      }
      const rival = expected.rivals[at]!.find(({ token }) => token === tokens[at]);
      assert.ok(
        rival !== undefined && rival.margin < MARGIN_MAX,
        `prompt ${i}, token ${at}: ${tokens[at]} in place of ${expected.tokens[at]}, margin ${rival?.margin}`,
      );
    }
    return equalCount;
  }

  test('one request at a time is libllama alone, whether prefixes are kept, reused or not', async () => {
    requireEqual(await oneByOne('plain'));
    requireEqual(await oneByOne('cached'));
    requireEqual(await oneByOne('cached'));
    const output = await new LlamaClient(server, 'cached').generate({
      ...question(PROMPTS[0]!),
      return_num_input_tokens: true,
    });
    // All of the prompt but its last token, whose logits are wanted.
    assert.equal(output.num_cached_tokens, output.num_input_tokens! - 1);
    requireEqual([output]);
  });

  test('a prompt of more rows than the border between the kernels is libllama alone', async () => {
    if ('reason' in gguf) return;
    const prompt = `${'The sea is wide and the ship is small. '.repeat(12)}The captain`;
    const expected = await generateAlone({ file: gguf.file, prompts: [prompt], tokensMax: TOKENS_MAX });
    const output = await new LlamaClient(server, 'plain').generate(question(prompt));
    assert.deepEqual(tokensOf([output]), expected[0]!.tokens);
  });

  for (const [model, where] of [
    ['small_steps', 'in one context'],
    ['three_contexts', 'in three contexts'],
  ] as const) {
    test(`eight at once in steps of fewer than 64 rows are libllama alone, to the last token: ${where}`, async () => {
      if ('reason' in gguf) return;
      const options = { tokensMax: TOKENS_IN_STEP, isEndIgnored: true };
      const expected = await generateAlone({ file: gguf.file, prompts: PROMPTS, ...options });
      const client = new LlamaClient(server, model);
      const sampling = { temperature: 0, max_tokens: TOKENS_IN_STEP, ignore_eos: true };
      const outputs = await Promise.all(PROMPTS.map((prompt) => client.generate(question(prompt, sampling))));
      const tokens = outputs.map((output) => tokensOf([output]));
      assert.deepEqual(
        tokens,
        expected.map((generated) => generated.tokens),
      );
    });
  }

  test('the cells of several contexts are counted together', async () => {
    assert.equal(await metricOf(server, 'nv_llm_kv_cells_total', 'three_contexts'), 16_384);
    const client = new LlamaClient(server, 'three_contexts');
    await Promise.all(PROMPTS.map((prompt) => client.generate(question(prompt))));
    const isIdle = async () =>
      (await metricOf(server, 'nv_llm_requests_running', 'three_contexts')) === 0 &&
      (await metricOf(server, 'nv_llm_requests_waiting', 'three_contexts')) === 0;
    assert.ok(await waitUntil(isIdle, 5000));
  });

  test('eight at once differ from libllama alone only where two tokens are equally good', async (t) => {
    for (const model of ['plain', 'cached']) {
      const equalCount = requireNear(await atOnce(model));
      t.diagnostic(`${model}: ${equalCount} of ${PROMPTS.length} texts equal to the end`);
      assert.ok(equalCount >= PROMPTS.length / 4);
    }
  });

  test('and so they do where requests are preempted and begin again', async (t) => {
    const equalCount = requireNear(await atOnce('tiny_cache'));
    t.diagnostic(`${equalCount} of ${PROMPTS.length} texts equal to the end`);
    assert.ok((await preemptionsOf('tiny_cache')) > 0, 'nobody was preempted');
  });

  async function preemptionsOf(model: string): Promise<number> {
    // The host tells its metrics a few times a second.
    await new Promise((resolve) => setTimeout(resolve, 600));
    return metricOf(server, 'nv_llm_preemptions_total', model);
  }
});
