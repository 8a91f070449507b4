// LoRA adapters through the server: chosen by each request, several in one engine at once, and no cell of the KV cache
// shared between them. The model is tiny and nearly exact, so every text can be compared with the one its adapter writes
// alone, up to the first token of which the model itself is not sure.
// Skipped, with the reason, where libllama or the vocabulary cannot be had.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { writeLora, writeTinyLlama } from '../support/gguf-models.ts';
import { addLlama, findGguf, LlamaClient, type Parameters } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';

const PROMPTS = ['The capital of France is', 'one two three four five six', 'def fibonacci(n):\n'];
const ADAPTERS = [undefined, 'loud', 'other', 'zero'];

/** Rows beside it in a step change a number by a thousandth; two tokens that are closer than this may change places. */
const TIE_LOGPROBS = 0.02;

interface Ask {
  readonly model?: string;
  readonly prompt: string;
  readonly adapter?: string | undefined;
  readonly sampling?: object;
}

/** The likeliest tokens at one place of a text, by id. */
type Candidates = Readonly<Record<string, { readonly logprob: number; readonly rank: number }>>;

function idOf(candidates: Candidates): string {
  return Object.keys(candidates).find((id) => candidates[id]!.rank === 1)!;
}

/** The tokens before the first near tie. */
function sureCountOf(tokens: readonly Candidates[]): number {
  const first = tokens.findIndex((candidates) => {
    const [best, next] = Object.values(candidates).sort((a, b) => a.rank - b.rank);
    return best!.logprob - next!.logprob < TIE_LOGPROBS;
  });
  return first === -1 ? tokens.length : first;
}

describe('LoRA adapters', { skip }, () => {
  let repository: TestRepository;
  let files: TestRepository;
  let server: RunningServer;

  const ask = (options: Ask) => {
    const { model = 'adapted', prompt, adapter, sampling } = options;
    return new LlamaClient(server, model).generate({
      text_input: prompt,
      return_num_input_tokens: true,
      return_logprobs: sampling !== undefined && 'logprobs' in sampling,
      sampling: {
        ...{ temperature: 0, max_tokens: 40, ignore_eos: true },
        ...(adapter === undefined ? {} : { lora_name: adapter }),
        ...sampling,
      },
    });
  };
  const textOf = async (options: Ask) => (await ask(options)).text_output;

  const tokensOf = async (options: Ask): Promise<readonly Candidates[]> => {
    const { logprobs } = await ask({ ...options, sampling: { logprobs: 2 } });
    return JSON.parse(logprobs!) as Candidates[];
  };

  const add = (
    name: string,
    adapters: Readonly<Record<string, string>> | undefined,
    more: Parameters = {},
  ) => {
    const table =
      adapters === undefined ? {} : { lora_adapters: JSON.stringify(adapters).replaceAll('"', '\\"') };
    const small = {
      context_length: 512,
      kv_cells: 4096,
      threads: 1,
      cache_type_k: 'f32',
      cache_type_v: 'f32',
    };
    addLlama(repository, { name, file: files.at('model.gguf'), parameters: { ...small, ...table, ...more } });
  };

  before(async () => {
    repository = createRepository();
    files = createRepository();
    const from = files.at('model.gguf');
    writeTinyLlama(from, { vocabularyOf, layerCount: 3, tokenCount: 512, seed: 1 });
    writeLora(files.at('loud.gguf'), { from, strength: 2, seed: 5 });
    writeLora(files.at('other.gguf'), { from, strength: 2, seed: 6 });
    writeLora(files.at('zero.gguf'), { from, strength: 0, seed: 7 });
    writeFileSync(files.at('broken.gguf'), 'no adapter');
    const adapters = {
      loud: files.at('loud.gguf'),
      other: files.at('other.gguf'),
      zero: files.at('zero.gguf'),
    };
    add('plain', undefined);
    add('adapted', adapters);
    add('drafted', adapters, { draft_model: from });
    add('missing', { gone: 'gone.gguf' });
    add('broken', { bad: files.at('broken.gguf') });
    add('mistaken', { whole: from });
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

  test('an adapter changes the text, one of zeros does not, and without a name there is none', async () => {
    for (const prompt of PROMPTS) {
      const plain = await textOf({ model: 'plain', prompt });
      assert.equal(await textOf({ prompt }), plain);
      assert.equal(await textOf({ prompt, adapter: 'zero' }), plain);
      const loud = await textOf({ prompt, adapter: 'loud' });
      const other = await textOf({ prompt, adapter: 'other' });
      assert.equal(new Set([plain, loud, other]).size, 3);
    }
  });

  test('requests with different adapters at once answer as each does alone', async () => {
    const questions = PROMPTS.flatMap((prompt) => ADAPTERS.map((adapter) => ({ prompt, adapter })));
    const alone: (readonly Candidates[])[] = [];
    for (const question of questions) alone.push(await tokensOf(question));
    const rounds = await Promise.all([...questions, ...questions].map((question) => tokensOf(question)));
    const sureCounts = alone.map(sureCountOf);
    rounds.forEach((tokens, i) => {
      const sureCount = sureCounts[i % alone.length]!;
      const expected = alone[i % alone.length]!.slice(0, sureCount);
      assert.deepEqual(
        tokens.slice(0, sureCount).map(idOf),
        expected.map(idOf),
        JSON.stringify(questions[i % alone.length]),
      );
    });
    const total = sureCounts.reduce((sum, count) => sum + count, 0);
    assert.ok(total > questions.length * 20, `${total} sure tokens`);
  });

  test('the cache of one adapter is of no use to another', async () => {
    const prompt = `${'a b c d e f g h '.repeat(8)}${Date.now()}`;
    for (const adapter of ADAPTERS) {
      const first = await ask({ prompt, adapter });
      assert.equal(first.num_cached_tokens, 0, `${adapter}, first`);
      const second = await ask({ prompt, adapter });
      assert.ok(second.num_cached_tokens! > 30, `${adapter}, second`);
      assert.equal(second.text_output, first.text_output);
    }
  });

  test('sampling and two choices with an adapter', async () => {
    const sampling = { temperature: 0.9, top_k: 4, seed: 3, n: 2 };
    const answers = await Promise.all(
      ['loud', 'loud', 'other'].map((adapter) => textOf({ prompt: PROMPTS[0]!, adapter, sampling })),
    );
    assert.deepEqual(answers[0], answers[1]);
    assert.notDeepEqual(answers[0], answers[2]);
  });

  test('a draft model, which knows of no adapter, changes no text', async () => {
    for (const adapter of ADAPTERS) {
      const prompt = PROMPTS[0]!;
      assert.equal(await textOf({ model: 'drafted', prompt, adapter }), await textOf({ prompt, adapter }));
    }
  });

  test('unknown adapters are refused as vLLM refuses them', async () => {
    const question = { text_input: 'x', sampling: { lora_name: 'nobody' } };
    const unknown = await new LlamaClient(server, 'adapted').error(question);
    assert.equal(unknown.status, 400);
    assert.match(
      unknown.error,
      /LoRA nobody is not supported, we currently support \['loud', 'other', 'zero'\]/,
    );
    const none = await new LlamaClient(server, 'plain').error(question);
    assert.match(none.error, /LoRA feature is not enabled\./);
  });

  test('adapters that cannot be loaded fail the load, and say why', async () => {
    const response = await fetch(`${server.httpUrl}/v2/repository/index`, { method: 'POST' });
    const index = (await response.json()) as { name: string; state?: string; reason?: string }[];
    const reasonOf = (model: string) => index.find(({ name }) => name === model)?.reason ?? '';
    assert.match(reasonOf('missing'), /there is no file .*gone\.gguf/);
    assert.match(reasonOf('broken'), /LoRA adapter .*broken\.gguf cannot be loaded: /);
    assert.match(
      reasonOf('mistaken'),
      /model\.gguf cannot be loaded: .*expect general\.type to be 'adapter'/,
    );
  });
});
