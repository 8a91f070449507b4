// What an LLM shows on the metrics port, under Triton-style names and under vLLM's, for dashboards that exist. Changes are
// gathered and sent to the server a few times a second, all in one message: a step of the engine must not wait for them.

import type { ServerCalls, ServerMetricCall } from '../../backend/server-calls.ts';
import type { SchedulerStats } from './scheduler/step-plan.ts';

const FLUSH_MS = 250;

const TTFT_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const REQUEST_BUCKETS = [1, 2.5, 5, 10, 15, 20, 30, 40, 50, 60];
const CHOICE_BUCKETS = [1, 2, 5, 10, 20];

interface Row {
  readonly triton?: string;
  readonly vllm?: string;
  readonly help: string;
}

const COUNTERS = {
  promptTokens: row(
    'prompt_tokens_total',
    'prompt_tokens_total',
    'Tokens of prompts, taken from the cache or computed',
  ),
  generatedTokens: row('generation_tokens_total', 'generation_tokens_total', 'Tokens generated'),
  prefixQueried: row(
    'prefix_queries_total',
    'prefix_cache_queries_total',
    'Tokens looked for in the prefix cache',
  ),
  prefixHit: row(
    'prefix_hits_total',
    'prefix_cache_hits_total',
    'Tokens taken from the prefix cache, not computed twice',
  ),
  preemptions: row(
    'preemptions_total',
    'num_preemptions_total',
    'Requests that gave up their cells and began again',
  ),
  contextShifts: row(
    'context_shifts_total',
    undefined,
    'Texts that forgot a part because their context was full',
  ),
  drafted: row('draft_tokens_total', 'spec_decode_num_draft_tokens_total', 'Tokens proposed by speculation'),
  accepted: row(
    'draft_accepted_tokens_total',
    'spec_decode_num_accepted_tokens_total',
    'Proposed tokens that were right',
  ),
} as const;

const GAUGES = {
  running: row('requests_running', 'num_requests_running', 'Requests that hold cells'),
  waiting: row('requests_waiting', 'num_requests_waiting', 'Requests that wait for cells'),
  cellsUsed: row('kv_cells_used', undefined, 'Cells of the KV cache in use, kept prefixes included'),
  cellsCached: row('kv_cells_cached', undefined, 'Cells that only hold prefixes for later requests'),
  cellsTotal: row('kv_cells_total', undefined, 'Cells of the KV cache'),
  cellsShare: row(
    undefined,
    'kv_cache_usage_perc',
    'Share of the KV cache that running requests use; 1 is all',
  ),
  promptRate: row('prompt_tokens_per_second', undefined, 'Tokens of prompts per second, of late'),
  generatedRate: row('generation_tokens_per_second', undefined, 'Tokens generated per second, of late'),
  acceptance: row(
    'draft_acceptance_ratio',
    'spec_decode_draft_acceptance_rate',
    'Share of proposed tokens that were right',
  ),
} as const;

const HISTOGRAMS = {
  firstToken: {
    ...row('time_to_first_token_seconds', 'time_to_first_token_seconds', 'From arrival to the first token'),
    buckets: TTFT_BUCKETS,
  },
  perToken: {
    ...row('time_per_output_token_seconds', 'time_per_output_token_seconds', 'Between two tokens of a text'),
    buckets: TOKEN_BUCKETS,
  },
  request: {
    ...row('request_seconds', 'e2e_request_latency_seconds', 'From arrival to the last token'),
    buckets: REQUEST_BUCKETS,
  },
  promptLength: { ...row(undefined, 'request_prompt_tokens', 'Tokens in a prompt'), buckets: [] },
  generatedLength: {
    ...row(undefined, 'request_generation_tokens', 'Tokens generated for a request'),
    buckets: [],
  },
  choices: { ...row(undefined, 'request_params_n', 'The parameter n of a request'), buckets: CHOICE_BUCKETS },
} as const;

function row(triton: string | undefined, vllm: string | undefined, help: string): Row {
  return {
    ...(triton === undefined ? {} : { triton: `nv_llm_${triton}` }),
    ...(vllm === undefined ? {} : { vllm: `vllm:${vllm}` }),
    help,
  };
}

export type CounterName = keyof typeof COUNTERS;
export type GaugeName = keyof typeof GAUGES;
export type HistogramName = keyof typeof HISTOGRAMS;

/** By index of the bucket: what was observed since the last flush. */
type Observed = Map<number, { sum: number; count: number }>;

export class EngineMetrics {
  readonly #calls: ServerCalls | undefined;
  readonly #labels: Readonly<Record<string, string>>;
  readonly #buckets: Readonly<Record<HistogramName, readonly number[]>>;
  readonly #counters = new Map<CounterName, number>();
  readonly #gauges = new Map<GaugeName, number>();
  readonly #sentGauges = new Map<GaugeName, number>();
  readonly #histograms = new Map<HistogramName, Observed>();
  readonly #finished = new Map<string, number>();
  readonly #madeFinished = new Set<string>();
  /** What the next message tells. */
  #told: ServerMetricCall[] = [];
  #timer: NodeJS.Timeout | undefined;
  #lastFlushMs = performance.now();

  constructor(
    calls: ServerCalls | undefined,
    model: { readonly name: string; readonly version: number; readonly contextLength: number },
  ) {
    this.#calls = calls;
    this.#labels = { model: model.name, version: String(model.version), model_name: model.name };
    const lengths = lengthBuckets(model.contextLength);
    this.#buckets = {
      firstToken: HISTOGRAMS.firstToken.buckets,
      perToken: HISTOGRAMS.perToken.buckets,
      request: HISTOGRAMS.request.buckets,
      promptLength: lengths,
      generatedLength: lengths,
      choices: HISTOGRAMS.choices.buckets,
    };
    for (const counter of Object.values(COUNTERS)) this.#tell('counter', counter, 'create', 0);
    for (const gauge of Object.values(GAUGES)) this.#tell('gauge', gauge, 'create', 0);
    for (const name of keysOf(HISTOGRAMS)) {
      this.#tell('histogram', HISTOGRAMS[name], 'create', 0, { buckets: this.#buckets[name] });
    }
    this.#send();
  }

  count(name: CounterName, by: number): void {
    if (by === 0) return;
    this.#counters.set(name, (this.#counters.get(name) ?? 0) + by);
    this.#flushSoon();
  }

  observe(name: HistogramName, value: number, count = 1): void {
    const bounds = this.#buckets[name];
    let index = bounds.findIndex((bound) => value <= bound);
    if (index < 0) index = bounds.length;
    const observed: Observed = this.#histograms.get(name) ?? new Map();
    this.#histograms.set(name, observed);
    const bucket = observed.get(index) ?? { sum: 0, count: 0 };
    observed.set(index, { sum: bucket.sum + value * count, count: bucket.count + count });
    this.#flushSoon();
  }

  countFinished(reason: string): void {
    this.#finished.set(reason, (this.#finished.get(reason) ?? 0) + 1);
    this.#flushSoon();
  }

  /** The counters of the scheduler, by what they have grown since `before`, and its gauges. */
  takeStats(stats: SchedulerStats, before: SchedulerStats, cellCount: number): void {
    this.count('preemptions', stats.preemptions - before.preemptions);
    this.count('contextShifts', stats.contextShifts - before.contextShifts);
    this.count('drafted', stats.tokensProposed - before.tokensProposed);
    this.count('accepted', stats.tokensAccepted - before.tokensAccepted);
    this.#set('running', stats.running);
    this.#set('waiting', stats.waiting);
    this.#set('cellsUsed', stats.cellsUsed);
    this.#set('cellsCached', stats.cellsCached);
    this.#set('cellsTotal', cellCount);
    this.#set('cellsShare', (stats.cellsUsed - stats.cellsCached) / cellCount);
    if (stats.tokensProposed > 0) this.#set('acceptance', stats.tokensAccepted / stats.tokensProposed);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#flush();
    clearTimeout(this.#timer);
  }

  #set(name: GaugeName, value: number): void {
    if (this.#sentGauges.get(name) === value) this.#gauges.delete(name);
    else this.#gauges.set(name, value);
    if (this.#gauges.size > 0) this.#flushSoon();
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  #flush(): void {
    this.#timer = undefined;
    this.#setRates();
    for (const [name, by] of this.#counters) this.#tell('counter', COUNTERS[name], 'increment', by);
    this.#counters.clear();
    for (const [name, value] of this.#gauges) {
      this.#tell('gauge', GAUGES[name], 'set', value);
      this.#sentGauges.set(name, value);
    }
    this.#gauges.clear();
    for (const [name, observed] of this.#histograms) {
      for (const { sum, count } of observed.values()) {
        this.#tell('histogram', HISTOGRAMS[name], 'observe', sum / count, {
          buckets: this.#buckets[name],
          count,
        });
      }
    }
    this.#histograms.clear();
    for (const [reason, by] of this.#finished) this.#tellFinished(reason, by);
    this.#finished.clear();
    this.#send();
  }

  #send(): void {
    if (this.#told.length > 0) this.#calls?.noteMetrics(this.#told);
    this.#told = [];
  }

  /** Rates go back to zero when nothing more comes, so another flush is asked for while they are not. */
  #setRates(): void {
    const nowMs = performance.now();
    const seconds = Math.max((nowMs - this.#lastFlushMs) / 1000, FLUSH_MS / 1000);
    this.#lastFlushMs = nowMs;
    const prompt = Math.round((this.#counters.get('promptTokens') ?? 0) / seconds);
    const generated = Math.round((this.#counters.get('generatedTokens') ?? 0) / seconds);
    this.#set('promptRate', prompt);
    this.#set('generatedRate', generated);
    if (prompt + generated > 0) this.#flushSoon();
  }

  #tellFinished(reason: string, by: number): void {
    const finished = {
      vllm: 'vllm:request_success_total',
      triton: 'nv_llm_requests_finished_total',
      help: 'Requests that ended, by reason',
    };
    const labels = { finished_reason: reason };
    if (!this.#madeFinished.has(reason)) this.#tell('counter', finished, 'create', 0, { labels });
    this.#madeFinished.add(reason);
    this.#tell('counter', finished, 'increment', by, { labels });
  }

  #tell(
    type: ServerMetricCall['family']['type'],
    { triton, vllm, help }: Row,
    action: ServerMetricCall['action'],
    value: number,
    extra: { buckets?: readonly number[]; count?: number; labels?: Readonly<Record<string, string>> } = {},
  ): void {
    for (const name of [triton, vllm]) {
      if (name === undefined) continue;
      this.#told.push({
        family: { name, help, type },
        labels: { ...this.#labels, ...extra.labels },
        buckets: extra.buckets ?? [],
        action,
        value,
        ...(extra.count === undefined ? {} : { count: extra.count }),
      });
    }
  }
}

/** 1, 2, 5, 10, 20, 50 … as vLLM has them. */
function lengthBuckets(most: number): number[] {
  const bounds: number[] = [];
  for (let power = 1; power <= most; power *= 10) {
    for (const factor of [1, 2, 5]) if (power * factor <= most) bounds.push(power * factor);
  }
  return bounds;
}

function keysOf<T extends object>(table: T): (keyof T)[] {
  return Object.keys(table) as (keyof T)[];
}
