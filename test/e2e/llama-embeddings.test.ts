// Embeddings and reranking through the server, with tiny encoders of random weights and with a generating model. Every
// vector and score is compared with what libllama pools for that input alone, in the process of the test. Skipped, with the
// reason, where libllama or the vocabulary cannot be had.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { LlamaModel } from '../../src/backends/llama/library/model.ts';
import { booleanValue, textValue, uint32Value } from '../support/gguf-file.ts';
import { ENCODER, writeEncoder, writeTinyLlama } from '../support/gguf-models.ts';
import { loadNativeModel, poolAlone } from '../support/gguf-native.ts';
import { addLlama, findGguf, LlamaClient, textOf } from '../support/llama.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const gguf = await findGguf();
const skip = 'reason' in gguf ? gguf.reason : false;
const vocabularyOf = 'file' in gguf ? gguf.file : '';

const TEXTS = [
  'the cat sat on the mat',
  'blue sky',
  'a',
  'what is the sea?',
  'where is the dog, the dog is on the mat.',
];
const LLAMA_VECTOR_LENGTH = 64;
/** Of single precision, where a sum is made in another order. */
const TOLERANCE = 1e-5;
const WHOLE = { isSpecialAdded: true, isSpecialParsed: true };

interface Embedded {
  readonly embeddings: readonly (readonly number[])[];
  readonly prompt_tokens: number;
}

interface Ranked {
  readonly results: readonly { readonly index: number; readonly relevance_score: number }[];
  readonly prompt_tokens: number;
}

interface OpenAiAnswer {
  readonly data?: readonly { readonly index: number; readonly embedding: readonly number[] | string }[];
  readonly results?: readonly { readonly index: number; readonly relevance_score: number }[];
  readonly usage?: { readonly prompt_tokens: number };
  readonly error?: { readonly message: string };
}

describe('embeddings and reranking', { skip }, () => {
  let repository: TestRepository;
  let files: TestRepository;
  let server: RunningServer;
  const models = new Map<string, LlamaModel>();

  const embed = async (model: string, request: object) => {
    const question = { embedding_request: JSON.stringify(request) };
    return JSON.parse(textOf(await new LlamaClient(server, model).generate(question))) as Embedded;
  };
  const rerank = async (model: string, request: object) => {
    const question = { rerank_request: JSON.stringify(request) };
    return JSON.parse(textOf(await new LlamaClient(server, model).generate(question))) as Ranked;
  };
  const refusal = async (model: string, inputs: Readonly<Record<string, object>>) => {
    const entries = Object.entries(inputs).map(([name, value]) => [name, JSON.stringify(value)]);
    return (await new LlamaClient(server, model).error(Object.fromEntries(entries))).error;
  };
  /** The normalised vector of one input in a batch of its own. */
  const alone = async (model: string, tokens: readonly number[], pooling?: 'mean' | 'last' | 'cls') => {
    const length = model.startsWith('llama') ? LLAMA_VECTOR_LENGTH : ENCODER.vectorLength;
    const exact = { cacheTypeK: 'f32', cacheTypeV: 'f32', cellCount: 256, stepTokensMax: 256 } as const;
    const vector = await poolAlone(models.get(model)!, tokens, {
      length,
      pooling: pooling ?? 'unspecified',
      ...exact,
    });
    const norm = Math.hypot(...vector);
    return vector.map((value) => value / norm);
  };

  before(async () => {
    repository = createRepository();
    files = createRepository();
    const marked = { 'tokenizer.ggml.add_eos_token': booleanValue(true) };
    const template = { 'tokenizer.chat_template.rerank': textValue('[CLS]is {document} what {query}?[SEP]') };
    const eos = { ...marked, 'tokenizer.ggml.eos_token_id': uint32Value(4) };
    writeEncoder(files.at('mean.gguf'), { pooling: 'mean', seed: 1 });
    writeEncoder(files.at('cls.gguf'), { pooling: 'cls', seed: 2 });
    writeEncoder(files.at('unpooled.gguf'), { pooling: 'none', seed: 1 });
    writeEncoder(files.at('rank.gguf'), { pooling: 'rank', seed: 3 });
    writeEncoder(files.at('rank-marked.gguf'), { pooling: 'rank', seed: 3, metadata: eos });
    writeEncoder(files.at('rank-template.gguf'), { pooling: 'rank', seed: 3, metadata: template });
    writeTinyLlama(files.at('llama.gguf'), { vocabularyOf, layerCount: 2, tokenCount: 512, seed: 1 });
    const exact = {
      threads: 1,
      cache_type_k: 'f32',
      cache_type_v: 'f32',
      kv_cells: 2048,
      context_length: 256,
    };
    for (const name of ['mean', 'cls', 'unpooled', 'rank', 'rank-marked', 'rank-template']) {
      addLlama(repository, { name, file: files.at(`${name}.gguf`), parameters: { threads: 1 } });
    }
    const file = files.at('llama.gguf');
    addLlama(repository, { name: 'llama', file, parameters: { ...exact, embeddings: 'true' } });
    addLlama(repository, {
      name: 'llama-last',
      file,
      parameters: { ...exact, embeddings: 'true', pooling: 'last' },
    });
    addLlama(repository, { name: 'text-only', file, parameters: exact });
    addLlama(repository, {
      name: 'vectorless',
      file,
      parameters: { ...exact, embeddings: 'true', pooling: 'none' },
    });
    addLlama(repository, {
      name: 'short-queue',
      file: files.at('mean.gguf'),
      parameters: { threads: 1, max_waiting: 2 },
    });
    server = await startServer({
      repository: repository.path,
      args: ['--exit-on-error=false', '--strict-readiness=false'],
    });
    for (const name of ['mean', 'cls', 'rank', 'rank-marked', 'llama']) {
      models.set(name, await loadNativeModel(files.at(`${name}.gguf`)));
    }
    models.set('llama-last', models.get('llama')!);
  });

  after(async () => {
    for (const model of new Set(models.values())) model.free();
    await server?.stop();
    repository?.remove();
    files?.remove();
  });

  for (const [model, pooling] of [['mean'], ['cls'], ['llama', 'mean'], ['llama-last', 'last']] as const) {
    test(`${model}: vectors are what libllama pools for each input alone`, async () => {
      const { embeddings, prompt_tokens } = await embed(model, { input: TEXTS });
      const inputs = TEXTS.map((text) => models.get(model)!.tokenize(text, WHOLE));
      assert.equal(prompt_tokens, inputs.flat().length);
      assert.equal(embeddings.length, TEXTS.length);
      for (const [i, tokens] of inputs.entries())
        assertNear(embeddings[i]!, await alone(model, tokens, pooling));
    });
  }

  test('a batch is the same as its inputs one by one, and as many at once', async () => {
    const together = await embed('mean', { input: TEXTS });
    const single = await Promise.all(TEXTS.map((text) => embed('mean', { input: text })));
    for (const [i, { embeddings }] of single.entries()) assertNear(embeddings[0]!, together.embeddings[i]!);
    const many = Array.from({ length: 100 }, (_, i) => TEXTS[i % TEXTS.length]!);
    const { embeddings } = await embed('mean', { input: many });
    for (const [i, vector] of embeddings.entries())
      assertNear(vector, together.embeddings[i % TEXTS.length]!);
  });

  test('tokens are taken as well as texts', async () => {
    const tokens = TEXTS.map((text) => models.get('mean')!.tokenize(text, WHOLE));
    const expected = await embed('mean', { input: TEXTS });
    const lists = await embed('mean', { input: tokens });
    for (const [i, vector] of lists.embeddings.entries()) assertNear(vector, expected.embeddings[i]!);
    const one = await embed('mean', { input: tokens[1]! });
    assert.equal(one.embeddings.length, 1);
    assertNear(one.embeddings[0]!, expected.embeddings[1]!);
  });

  test('dimensions cut a vector and make its length one again', async () => {
    const [whole] = (await embed('mean', { input: 'blue sky' })).embeddings;
    const [cut] = (await embed('mean', { input: 'blue sky', dimensions: 8 })).embeddings;
    assert.equal(cut!.length, 8);
    const head = whole!.slice(0, 8);
    assertNear(
      cut!,
      head.map((value) => value / Math.hypot(...head)),
    );
    assert.ok(Math.abs(Math.hypot(...whole!) - 1) < TOLERANCE);
  });

  test('a file without pooling is pooled by the mean', async () => {
    const [vector] = (await embed('unpooled', { input: TEXTS[0]! })).embeddings;
    assertNear(vector!, (await embed('mean', { input: TEXTS[0]! })).embeddings[0]!);
  });

  test('a generating model writes and embeds at once', async () => {
    const writer = new LlamaClient(server, 'llama');
    const sampling = { temperature: 0, max_tokens: 40, ignore_eos: true };
    const expected = await writer.text({ text_input: 'The capital', sampling });
    const vector = (await embed('llama', { input: TEXTS[0]! })).embeddings[0]!;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        assert.equal(await writer.text({ text_input: 'The capital', sampling }), expected);
        assertNear((await embed('llama', { input: TEXTS[0]! })).embeddings[0]!, vector);
      }),
    );
  });

  test('wrong embedding requests are refused by name', async () => {
    const cases: [object, RegExp][] = [
      [{}, /'input' must be a string, a list of strings, or lists of tokens/],
      [{ input: [] }, /'input' must have 1 to 2048 elements/],
      [{ input: ['a', 7] }, /'input' must be a string, a list of strings/],
      [{ input: [1, 100_000] }, /'input' must be .*tokens of this model/],
      [{ input: [[1], []] }, /an input to embed has no tokens/],
      [{ input: 'a', dimensions: 33 }, /'dimensions' must be a whole number from 1 to 32/],
      [{ input: 'a', dimensions: 0.5 }, /'dimensions' must be a whole number/],
      [{ input: 'a '.repeat(80) }, /an input to embed has 82 tokens; this model takes at most 64/],
    ];
    for (const [request, expected] of cases)
      assert.match(await refusal('mean', { embedding_request: request }), expected);
  });

  test('models say what they do not do', async () => {
    assert.match(
      await refusal('text-only', { embedding_request: { input: 'a' } }),
      /Model text-only does not support 'embed' request; set the parameter 'embeddings' of its config to "true"/,
    );
    assert.match(
      await refusal('rank', { embedding_request: { input: 'a' } }),
      /does not support 'embed' request/,
    );
    const rerankRequest = { rerank_request: { query: 'a', documents: ['b'] } };
    assert.match(
      await refusal('mean', rerankRequest),
      /does not support 'rerank' request: it is no reranking model/,
    );
    const { error } = await new LlamaClient(server, 'mean').error({ text_input: 'a' });
    assert.match(error, /Model mean does not support 'generate' request/);
    const response = await fetch(`${server.httpUrl}/v2/repository/index`, { method: 'POST' });
    const index = (await response.json()) as { name: string; reason?: string }[];
    assert.match(
      index.find(({ name }) => name === 'vectorless')?.reason ?? '',
      /'pooling' is "none", but an input needs one/,
    );
  });

  test('more inputs than may wait are taken when nobody waits', async () => {
    const { embeddings } = await embed('short-queue', { input: TEXTS });
    assert.equal(embeddings.length, TEXTS.length);
  });

  /** CLS query SEP document, and an end after each where the vocabulary has it; here MASK stands for that. */
  const pairs = { rank: { end: [] as number[] }, 'rank-marked': { end: [4] } };
  for (const [model, { end }] of Object.entries(pairs)) {
    test(`${model}: scores and their order are those of libllama`, async () => {
      const query = 'what is the sea?';
      const { results, prompt_tokens } = await rerank(model, { query, documents: TEXTS });
      const plain = { isSpecialAdded: false, isSpecialParsed: false };
      const native = models.get(model)!;
      const inputs = TEXTS.map((text) => [
        ...[2, ...native.tokenize(query, plain), ...end, 3],
        ...[...native.tokenize(text, plain), ...end],
      ]);
      assert.equal(prompt_tokens, inputs.flat().length);
      const scores: number[] = [];
      for (const tokens of inputs)
        scores.push((await poolAlone(native, tokens, { length: 1, cellCount: 256 }))[0]!);
      const order = scores.map((_, i) => i).sort((a, b) => scores[b]! - scores[a]!);
      assert.deepEqual(
        results.map(({ index }) => index),
        order,
      );
      for (const { index, relevance_score } of results) {
        assert.ok(
          Math.abs(relevance_score - scores[index]!) < TOLERANCE,
          `${relevance_score} is not ${scores[index]}`,
        );
      }
    });
  }

  test('the template of a reranker makes the pair', async () => {
    const { results, prompt_tokens } = await rerank('rank-template', {
      query: 'sea {document}',
      documents: ['blue'],
    });
    const native = models.get('rank')!;
    const text = '[CLS]is blue what sea {document}?[SEP]';
    const tokens = native.tokenize(text, { isSpecialAdded: false, isSpecialParsed: true });
    assert.equal(prompt_tokens, tokens.length);
    const [score] = await poolAlone(native, tokens, { length: 1, cellCount: 256 });
    assert.ok(Math.abs(results[0]!.relevance_score - score!) < TOLERANCE);
  });

  const post = async (path: string, body: object) => {
    const response = await fetch(`${server.httpUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
    return { status: response.status, body: (await response.json()) as OpenAiAnswer };
  };

  test("OpenAI's embeddings are the same vectors, as numbers and in base64", async () => {
    const { embeddings, prompt_tokens } = await embed('mean', { input: TEXTS });
    const { body } = await post('/v1/embeddings', { model: 'mean', input: TEXTS });
    assert.equal(body.usage?.prompt_tokens, prompt_tokens);
    for (const [i, { embedding, index }] of body.data!.entries()) {
      assert.equal(index, i);
      assertNear(embedding as number[], embeddings[i]!);
    }
    const encoded = await post('/v1/embeddings', {
      model: 'mean',
      input: TEXTS[0],
      encoding_format: 'base64',
    });
    const bytes = Uint8Array.from(Buffer.from(encoded.body.data![0]!.embedding as string, 'base64'));
    assertNear(Array.from(new Float32Array(bytes.buffer)), embeddings[0]!);
    const cut = await post('/v1/embeddings', { model: 'mean', input: TEXTS[0], dimensions: 4 });
    assert.equal(cut.body.data![0]!.embedding.length, 4);
    const refused = await post('/v1/embeddings', { model: 'text-only', input: 'a' });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error?.message ?? '', /does not support 'embed' request/);
  });

  test('/v1/rerank has the scores of the model, the best first', async () => {
    const query = 'blue sky';
    const { results } = await rerank('rank', { query, documents: TEXTS });
    const { body } = await post('/v1/rerank', { model: 'rank', query, documents: TEXTS, top_n: 2 });
    const pairs = body.results!.map(({ index, relevance_score }) => ({ index, relevance_score }));
    assert.deepEqual(pairs, results.slice(0, 2));
    assert.equal((await post('/v1/rerank', { model: 'mean', query, documents: TEXTS })).status, 400);
  });

  test('wrong rerank requests are refused by name', async () => {
    const cases: [object, RegExp][] = [
      [{ documents: ['a'] }, /'query' must be a string/],
      [{ query: 'a', documents: [] }, /'documents' must be a list of 1 to 2048 strings/],
      [{ query: 'a', documents: [1] }, /'documents' must be a list/],
    ];
    for (const [request, expected] of cases)
      assert.match(await refusal('rank', { rerank_request: request }), expected);
  });
});

function assertNear(actual: readonly number[], expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  actual.forEach((value, i) => {
    assert.ok(Math.abs(value - expected[i]!) < TOLERANCE, `[${i}] is ${value}, not ${expected[i]}`);
  });
}
