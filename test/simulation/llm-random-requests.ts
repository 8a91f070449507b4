// Requests for the simulation of the LLM scheduler, and the language model that answers them: the next token is a function of
// what the cache holds before it, so that a request that shared, waited or was preempted must still say what it would
// have said alone. Prompts begin alike, go on from finished requests, or are new.

import { cutForShift } from '../../src/backends/llama/scheduler/context-shift.ts';
import type { NewRequest, SchedulerLimits } from '../../src/backends/llama/scheduler/step-plan.ts';
import type { Prng } from '../../src/lib/prng.ts';
import { beginContext, mix } from './llm-kv-cache.ts';

const VOCABULARY = 6;
const REMEMBERED_MAX = 30;

export interface SimulatedRequest extends NewRequest {
  readonly prompt: readonly number[];
  /** Different salts are different draws of the sampler. */
  readonly salt: number;
  /** What it says when it runs alone; the last one ends it. */
  readonly expected: readonly number[];
  readonly generated: number[];
  /** What the model sees of prompt and answer. */
  readonly text: ShiftingText;
  state: 'waiting' | 'running' | 'ended';
  /** Since it was last admitted. */
  sequence: number;
  lastProgressStep: number;
}

export function nextToken(context: number, salt: number): number {
  return mix(context, salt) % VOCABULARY;
}

export function randomLimits(prng: Prng): SchedulerLimits {
  const cellCount = prng.pick([40, 80, 150, 300, 500]);
  return {
    cellCount,
    sequenceCount: prng.integer(2, 40),
    stepTokensMax: prng.integer(3, 64),
    prefillChunkMax: prng.integer(1, 32),
    apartRowsMin: prng.boolean() ? Number.POSITIVE_INFINITY : prng.integer(1, 32),
    runningMax: prng.integer(1, 24),
    waitingMax: prng.integer(5, 60),
    contextLength: prng.integer(30, Math.floor(cellCount * 1.2)),
    isContextShift: prng.boolean(0.4),
    isPrefixReuse: prng.boolean(0.85),
    keptCellsMax: prng.boolean() ? cellCount : prng.integer(0, cellCount >> 1),
    keptCellsMin: prng.boolean() ? cellCount : prng.integer(0, cellCount >> 2),
  };
}

/** Makes random requests that share prefixes. */
export class RequestSource {
  readonly #prng: Prng;
  readonly #limits: SchedulerLimits;
  readonly #adapterCount: number;
  readonly #priorityCount: number;
  readonly #systemPrompts: readonly (readonly number[])[];
  readonly #remembered: (readonly number[])[] = [];
  #last: { readonly adapter: number; readonly prompt: readonly number[] } | undefined;
  #nextId = 1;

  constructor(prng: Prng, limits: SchedulerLimits) {
    this.#prng = prng;
    this.#limits = limits;
    this.#adapterCount = prng.pick([1, 1, 2, 3]);
    this.#priorityCount = prng.pick([1, 1, 3]);
    this.#systemPrompts = Array.from({ length: 4 }, () => this.#tokens(Math.floor(limits.cellCount / 4)));
  }

  get adapterCount(): number {
    return this.#adapterCount;
  }

  make(step: number): SimulatedRequest {
    const prng = this.#prng;
    // Equal ones come in bursts: they are computed side by side.
    const isRepeat = this.#last !== undefined && prng.boolean(0.4);
    const adapter = isRepeat ? this.#last!.adapter : prng.integer(0, this.#adapterCount - 1);
    const salt = prng.pick([0, 0, prng.integer(1, 1_000)]);
    const prompt = isRepeat ? this.#last!.prompt : this.#prompt();
    const maxTokens = prng.pick([1, prng.integer(1, 20), prng.integer(1, this.#limits.contextLength)]);
    const room = this.#limits.isContextShift ? maxTokens : this.#limits.contextLength - prompt.length;
    const count = Math.max(1, Math.min(maxTokens, room));
    const expected = sayAlone({ text: new ShiftingText(prompt, this.#limits), adapter, salt, count });
    const priority = prng.integer(0, this.#priorityCount - 1);
    this.#last = { adapter, prompt };
    return {
      ...{ id: this.#nextId++, prompt, priority, adapter, maxTokens },
      ...{ salt, expected, generated: [], text: new ShiftingText(prompt, this.#limits) },
      ...{ state: 'waiting', sequence: -1, lastProgressStep: step },
    };
  }

  /** Later requests may go on from this one. */
  remember({ prompt, generated }: SimulatedRequest): void {
    const path = [...prompt, ...generated];
    if (this.#remembered.length < REMEMBERED_MAX) this.#remembered.push(path);
    else this.#remembered[this.#prng.integer(0, REMEMBERED_MAX - 1)] = path;
  }

  #prompt(): readonly number[] {
    const prng = this.#prng;
    const { cellCount, contextLength } = this.#limits;
    const begin = prng.float();
    let path: readonly number[] = [];
    if (begin < 0.5) path = prng.pick(this.#systemPrompts);
    else if (begin < 0.75 && this.#remembered.length > 0) path = prng.pick(this.#remembered);
    if (path.length > 0 && prng.boolean(0.2)) path = path.slice(0, prng.integer(1, path.length));
    const prompt = prng.boolean(0.1) && path.length > 0 ? path : [...path, ...this.#tokens(cellCount / 5)];
    // Few may be as long as the cache, or longer.
    return prng.boolean(0.02) ? prompt : prompt.slice(0, Math.min(contextLength, cellCount) - 1);
  }

  #tokens(lengthMax: number): number[] {
    const length = this.#prng.integer(1, Math.max(1, Math.floor(lengthMax)));
    return Array.from({ length }, () => this.#prng.integer(0, VOCABULARY - 1));
  }
}

/** A text that forgets a part of itself when it has filled its context, where the limits say so. */
export class ShiftingText {
  readonly #limits: SchedulerLimits;
  #promptLength: number;
  tokens: readonly number[];

  constructor(prompt: readonly number[], limits: SchedulerLimits) {
    this.#limits = limits;
    this.#promptLength = prompt.length;
    this.tokens = prompt;
  }

  /** True when it was shifted. */
  push(token: number): boolean {
    const { isContextShift, contextLength } = this.#limits;
    this.tokens = [...this.tokens, token];
    if (!isContextShift || this.tokens.length < contextLength) return false;
    const { begin, end } = cutForShift(this.tokens.length, {
      promptLength: this.#promptLength,
      contextLength,
    });
    this.tokens = this.tokens.filter((_, i) => i < begin || i >= end);
    this.#promptLength -= end - begin;
    return true;
  }
}

function sayAlone(request: { text: ShiftingText; adapter: number; salt: number; count: number }): number[] {
  const { text, adapter } = request;
  let context = contextOf(text, adapter);
  const said: number[] = [];
  while (said.length < request.count) {
    const token = nextToken(context, request.salt);
    said.push(token);
    context = text.push(token) ? contextOf(text, adapter) : mix(context, token);
    if (isEnd(context)) break;
  }
  return said;
}

function contextOf({ tokens }: ShiftingText, adapter: number): number {
  return tokens.reduce(mix, beginContext(adapter));
}

/** Some requests end before their longest. */
function isEnd(context: number): boolean {
  return context % 61 === 0;
}
