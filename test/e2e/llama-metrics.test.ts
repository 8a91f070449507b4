// What a llama model shows on the metrics port: every name, and numbers that follow from what was asked.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { addLlama, ask, findGguf, LlamaClient, metricOf, metricsText } from '../support/llama.ts';
import { waitUntil } from '../support/load.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const COUNTERS = [
  ...['nv_llm_prompt_tokens_total', 'nv_llm_generation_tokens_total', 'nv_llm_prefix_queries_total'],
  ...['nv_llm_prefix_hits_total', 'nv_llm_preemptions_total', 'nv_llm_draft_tokens_total'],
  'nv_llm_context_shifts_total',
  ...['nv_llm_draft_accepted_tokens_total', 'nv_llm_requests_finished_total'],
  ...['vllm:prompt_tokens_total', 'vllm:generation_tokens_total', 'vllm:prefix_cache_queries_total'],
  ...['vllm:prefix_cache_hits_total', 'vllm:num_preemptions_total', 'vllm:request_success_total'],
  ...['vllm:spec_decode_num_draft_tokens_total', 'vllm:spec_decode_num_accepted_tokens_total'],
];
const GAUGES = [
  ...['nv_llm_requests_running', 'nv_llm_requests_waiting', 'nv_llm_kv_cells_used', 'nv_llm_kv_cells_cached'],
  ...['nv_llm_kv_cells_total', 'nv_llm_prompt_tokens_per_second', 'nv_llm_generation_tokens_per_second'],
  ...['nv_llm_draft_acceptance_ratio', 'vllm:num_requests_running', 'vllm:num_requests_waiting'],
  ...['vllm:kv_cache_usage_perc', 'vllm:spec_decode_draft_acceptance_rate'],
];
const HISTOGRAMS = [
  ...['nv_llm_time_to_first_token_seconds', 'nv_llm_time_per_output_token_seconds', 'nv_llm_request_seconds'],
  ...['vllm:time_to_first_token_seconds', 'vllm:time_per_output_token_seconds', 'vllm:request_params_n'],
  ...['vllm:e2e_request_latency_seconds', 'vllm:request_prompt_tokens', 'vllm:request_generation_tokens'],
];
const KV_CELLS = 2048;
const PREFIX_TOKENS = 300;
const gguf = await findGguf();

describe('metrics of a llama model', { skip: 'reason' in gguf ? gguf.reason : false }, () => {
  let repository: TestRepository;
  let server: RunningServer;
  let client: LlamaClient;

  before(async () => {
    if ('reason' in gguf) return;
    repository = createRepository();
    const parameters = { threads: 1, context_length: 1024, kv_cells: KV_CELLS };
    addLlama(repository, { name: 'smol', file: gguf.file, parameters });
    server = await startServer({ repository: repository.path });
    client = new LlamaClient(server, 'smol');
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
  });

  const numberOf = (name: string) => metricOf(server, name, 'smol');

  /** The host tells its numbers a few times a second. */
  async function becomes(name: string, value: number): Promise<void> {
    let last = Number.NaN;
    const isThere = async () => {
      last = await numberOf(name);
      return last === value;
    };
    assert.ok(await waitUntil(isThere, 5000), `${name} is ${last}, not ${value}`);
  }

  test('count what was asked and answered', async () => {
    const question = {
      ...{ text_input: ask('List three fruits.'), sampling: { temperature: 0, max_tokens: 6 } },
      ...{ return_num_input_tokens: true, return_num_output_tokens: true },
    };
    const answer = await client.generate(question);
    assert.equal(answer.num_output_tokens, 6);
    await becomes('nv_llm_prompt_tokens_total', answer.num_input_tokens!);
    await becomes('nv_llm_generation_tokens_total', 6);
    await becomes('nv_llm_requests_finished_total', 1);
    await becomes('nv_llm_requests_running', 0);
    assert.equal(await numberOf('nv_llm_requests_waiting'), 0);
    assert.equal(await numberOf('nv_llm_kv_cells_total'), KV_CELLS);
    assert.equal(await numberOf('vllm:request_generation_tokens_sum'), 6);
    assert.equal(await numberOf('vllm:request_prompt_tokens_count'), 1);
    assert.equal(await numberOf('nv_llm_time_per_output_token_seconds_count'), 6);
    const [first, whole] = [
      await numberOf('nv_llm_time_to_first_token_seconds_sum'),
      await numberOf('nv_llm_request_seconds_sum'),
    ];
    assert.ok(first > 0 && first <= whole && whole < 60, `${first} ${whole}`);
    assert.match(await metricsText(server), /nv_llm_requests_finished_total\{finished_reason="length",/);
    await becomes('nv_llm_generation_tokens_per_second', 0);
  });

  test('have every name, with its type and help', async () => {
    const text = await metricsText(server);
    const types: readonly (readonly [string, readonly string[]])[] = [
      ['counter', COUNTERS],
      ['gauge', GAUGES],
      ['histogram', HISTOGRAMS],
    ];
    for (const [type, names] of types) {
      for (const name of names) {
        assert.ok(text.includes(`# TYPE ${name} ${type}\n`), `${name} is no ${type}`);
        assert.match(text, new RegExp(`^# HELP ${name} \\S`, 'm'));
        const row = type === 'histogram' ? `${name}_count` : name;
        assert.match(text, new RegExp(`^${row}\\{[^}]*model="smol"[^}]*version="1"[^}]*\\} `, 'm'));
      }
    }
    const known = new Set([...COUNTERS, ...GAUGES, ...HISTOGRAMS]);
    const told = [...text.matchAll(/^# TYPE ((?:nv_llm_|vllm:)\S+)/gm)].map(([, name]) => name!);
    assert.deepEqual(
      told.filter((name) => !known.has(name)),
      [],
    );
  });

  test('say how much of a repeated prefix was not computed twice', async () => {
    const word = 'of the sea and the land ';
    const prefix = word.repeat(Math.ceil(PREFIX_TOKENS / 6));
    const sampling = { temperature: 0, max_tokens: 2 };
    const [hitsBefore, queriesBefore] = [
      await numberOf('nv_llm_prefix_hits_total'),
      await numberOf('nv_llm_prefix_queries_total'),
    ];
    let asked = 0;
    let cached = 0;
    for (const end of ['One', 'Two', 'Three']) {
      const answer = await client.generate({
        ...{ text_input: `${prefix}\n${end}`, sampling, return_num_input_tokens: true },
      });
      asked += answer.num_input_tokens!;
      cached += answer.num_cached_tokens!;
      if (end !== 'One')
        assert.ok(answer.num_cached_tokens! >= PREFIX_TOKENS, String(answer.num_cached_tokens));
    }
    await becomes('nv_llm_prefix_queries_total', queriesBefore + asked);
    await becomes('nv_llm_prefix_hits_total', hitsBefore + cached);
    await becomes('vllm:prefix_cache_hits_total', hitsBefore + cached);
    const [used, kept] = [await numberOf('nv_llm_kv_cells_used'), await numberOf('nv_llm_kv_cells_cached')];
    assert.ok(used >= PREFIX_TOKENS && used < 2 * PREFIX_TOKENS, `${used} cells for one prefix`);
    assert.equal(used, kept);
    assert.equal(await numberOf('vllm:kv_cache_usage_perc'), 0);
  });
});
