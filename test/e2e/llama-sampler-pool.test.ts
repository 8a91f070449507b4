// Tokens chosen on several threads: the same seed gives the same text with and without them, whatever the rules.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addLlama, findGguf, LlamaClient, type Output, PROMPTS } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const gguf = await findGguf();

/** One for each prompt; its choices are shared out among the threads. Requests at once are in test/contract. */
const SAMPLINGS: readonly Readonly<Record<string, unknown>>[] = [
  { temperature: 1 },
  { temperature: 0.8, top_k: 40 },
  { temperature: 1.1, top_p: 0.9 },
  { temperature: 1, min_p: 0.05 },
  { temperature: 0.9, repetition_penalty: 1.3 },
  { temperature: 0.7, presence_penalty: 1, frequency_penalty: 0.5 },
  { temperature: 0, repetition_penalty: 1.2 },
  { temperature: 0, logit_bias: { '198': 3 }, presence_penalty: 0.5 },
].map((sampling, i) => ({ ...sampling, n: 6, seed: 40 + i, max_tokens: 6, ignore_eos: true }));

describe('sampler threads', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const base = { threads: 1, context_length: 256, kv_cells: 2048, step_tokens: 63, prefix_cache: 'false' };
    for (const [name, threads] of [
      ['one_thread', 0],
      ['more_threads', 2],
    ] as const) {
      addLlama(repository, { name, file: gguf.file, parameters: { ...base, sampler_threads: threads } });
    }
    server = await startServer({ repository: repository.path });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  /** Request after request: the rows of a step, and with them the logits, do not depend on when requests arrive. */
  async function textsOf(model: string): Promise<Output['text_output'][]> {
    const client = new LlamaClient(server, model);
    const texts: Output['text_output'][] = [];
    for (const [i, sampling] of SAMPLINGS.entries()) {
      texts.push((await client.generate({ text_input: PROMPTS[i]!, sampling })).text_output);
    }
    return texts;
  }

  test('the same seed gives the same texts', async () => {
    const one = await textsOf('one_thread');
    assert.deepEqual(await textsOf('more_threads'), one);
    assert.deepEqual(await textsOf('more_threads'), one, 'again, with the places of those before');
    assert.ok(new Set(one.flat()).size > PROMPTS.length, 'choices differ');
  });

  test('several choices, log probabilities and grammars are served beside them', async () => {
    const client = new LlamaClient(server, 'more_threads');
    const [many, seen, forced] = await Promise.all([
      client.generate({ text_input: PROMPTS[0]!, sampling: { n: 4, seed: 1, max_tokens: 8 } }),
      client.generate({
        text_input: PROMPTS[1]!,
        sampling: { seed: 1, max_tokens: 8, logprobs: 1 },
        return_logprobs: true,
      }),
      client.generate({
        text_input: PROMPTS[2]!,
        sampling: { seed: 1, max_tokens: 8, structured_outputs: { choice: ['yes', 'no'] } },
      }),
    ]);
    assert.equal(many.text_output.length, 4);
    assert.ok((JSON.parse(seen.logprobs!) as unknown[]).length > 0);
    assert.match(String(forced.text_output), /^(?:yes|no)$/);
  });
});
