// Proposes tokens with a small draft model, several at a time for all sequences together. The target model checks them in
// its next step, so that what is generated is what it would have generated alone. Its KV cache mirrors the texts by
// sequence id; whatever differs is removed and computed again. Cells are not shared here: when they are short, the texts
// that were drafted longest ago give up theirs.

import type { LlamaContext } from '../library/context.ts';
import { largest } from './token-sampler.ts';

export interface DraftRequest {
  readonly id: number;
  readonly sequence: number;
  /** Prompt and answer so far, in two parts that are never joined. */
  readonly prompt: ArrayLike<number>;
  readonly generated: readonly number[];
  readonly count: number;
}

export interface DrafterOptions {
  readonly context: LlamaContext;
  /** Rows in one decode. */
  readonly stepTokensMax: number;
  /** Of the target model: what lies above is no token to it. */
  readonly tokenCount: number;
}

export class Drafter {
  readonly #options: DrafterOptions;
  /** What the cache holds, by sequence, in order of least recent use. */
  readonly #mirrors = new Map<number, number[]>();

  constructor(options: DrafterOptions) {
    this.#options = options;
  }

  /** By request; those that the draft model has not read yet, or has no room for, are left out. */
  async propose(requests: readonly DraftRequest[]): Promise<Map<number, number[]>> {
    const proposals = new Map<number, number[]>();
    let open = this.#makeRoom(requests.filter(({ count }) => count > 0));
    let chosen = await this.#readOn(open);
    while (chosen.size > 0) {
      open = open.filter((request) => this.#take(request, chosen.get(request.id), proposals));
      chosen = await this.#step(open, chosen);
    }
    return proposals;
  }

  free(): void {
    const { context } = this.#options;
    context.free();
    context.model.free();
  }

  /** Takes the token into the proposals; true when another may follow. */
  #take({ id, count }: DraftRequest, token: number | undefined, proposals: Map<number, number[]>): boolean {
    const { context, tokenCount } = this.#options;
    if (token === undefined || token >= tokenCount) return false;
    const list = proposals.get(id) ?? [];
    list.push(token);
    proposals.set(id, list);
    return list.length < count && !context.model.isEndOfGeneration(token);
  }

  /** The requests whose text and proposals have cells; others are left out, the longest first. */
  #makeRoom(requests: readonly DraftRequest[]): DraftRequest[] {
    const wanted = requests
      .map((request) => {
        const mirror = this.#align(request);
        return { request, missing: lengthOf(request) + request.count - mirror.length };
      })
      .sort((a, b) => a.missing - b.missing);
    const active = new Set(requests.map(({ sequence }) => sequence));
    let free = this.#options.context.cellCount;
    for (const { length } of this.#mirrors.values()) free -= length;
    const taken: DraftRequest[] = [];
    for (const { request, missing } of wanted) {
      for (const [sequence, { length }] of this.#mirrors) {
        if (free >= missing) break;
        if (active.has(sequence)) continue;
        this.#forget(sequence);
        free += length;
      }
      if (free < missing) break;
      free -= missing;
      taken.push(request);
    }
    return taken;
  }

  /** Cuts the mirror back to where it is the same as the text; the last token is always computed, for its logits. */
  #align(request: DraftRequest): number[] {
    const { sequence } = request;
    const tokens = this.#mirrors.get(sequence) ?? [];
    this.#mirrors.delete(sequence);
    this.#mirrors.set(sequence, tokens);
    const longest = Math.min(tokens.length, lengthOf(request) - 1);
    let same = 0;
    while (same < longest && tokens[same] === tokenAt(request, same)) same++;
    if (same < tokens.length) {
      this.#options.context.removeCells(sequence, same, -1);
      tokens.length = same;
    }
    return tokens;
  }

  #forget(sequence: number): void {
    this.#options.context.removeCells(sequence, 0, -1);
    this.#mirrors.delete(sequence);
  }

  /**
   * Reads what the texts have more than their mirrors, one batch at most: a long prompt is read over several steps of the
   * engine and holds none of them up. Answers the first proposals of those it has read to the end.
   */
  async #readOn(requests: readonly DraftRequest[]): Promise<Map<number, number>> {
    const { context, stepTokensMax } = this.#options;
    const outputs = new Map<number, number>();
    context.beginBatch();
    for (const request of requests) {
      const mirror = this.#mirrors.get(request.sequence)!;
      const length = lengthOf(request);
      while (mirror.length < length && context.rowCount < stepTokensMax) {
        const position = mirror.length;
        const token = tokenAt(request, position);
        // The vocabulary of the target may be a little larger; such a text cannot be drafted.
        if (token >= context.model.tokenCount) break;
        const isLast = position === length - 1;
        const output = context.addRow(token, position, request.sequence, isLast);
        if (isLast) outputs.set(request.id, output);
        mirror.push(token);
      }
    }
    return this.#choose(outputs);
  }

  /** One token further for each. */
  async #step(
    requests: readonly DraftRequest[],
    last: ReadonlyMap<number, number>,
  ): Promise<Map<number, number>> {
    const { context } = this.#options;
    const outputs = new Map<number, number>();
    context.beginBatch();
    for (const { id, sequence } of requests) {
      const mirror = this.#mirrors.get(sequence)!;
      outputs.set(id, context.addRow(last.get(id)!, mirror.length, sequence, true));
      mirror.push(last.get(id)!);
    }
    return this.#choose(outputs);
  }

  /** When the decode fails the cache is emptied, and the next proposals begin anew. */
  async #choose(outputs: ReadonlyMap<number, number>): Promise<Map<number, number>> {
    const { context } = this.#options;
    if (context.rowCount === 0) return new Map();
    if ((await context.decode(context.hasDevice ? 'here' : 'aside')) !== 0) {
      this.#mirrors.clear();
      context.clearCells();
      return new Map();
    }
    context.finishCompute();
    context.readLogits();
    return new Map([...outputs].map(([id, output]) => [id, largest(context.logitsOf(output))]));
  }
}

function lengthOf({ prompt, generated }: DraftRequest): number {
  return prompt.length + generated.length;
}

function tokenAt({ prompt, generated }: DraftRequest, position: number): number {
  return position < prompt.length ? prompt[position]! : generated[position - prompt.length]!;
}
