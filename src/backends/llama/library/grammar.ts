// A GBNF grammar that libllama follows along one text: which tokens may come next. One per choice with a grammar; the
// native part is freed with `free`.

import koffi from 'koffi';
import { invalidArgument } from '../../../domain/status.ts';
import type { LlamaModel } from './model.ts';
import { bytes } from './native-arrays.ts';
import { TOKEN_DATA_ARRAY, TOKEN_DATA_BYTES } from './structs.ts';

const WORDS_PER_TOKEN = TOKEN_DATA_BYTES / 4;

export class GrammarConstraint {
  readonly #model: LlamaModel;
  readonly #pointer: bigint;
  readonly #scratch: CandidateMemory;

  constructor(model: LlamaModel, grammar: string, scratch: CandidateMemory) {
    const { library } = model;
    library.takeMessages();
    const pointer = library.functions.llama_sampler_init_grammar(model.vocab, grammar, 'root');
    if (pointer === null) {
      const reasons = library.takeMessages().map((line) => line.replace(/^\w+: /, ''));
      throw invalidArgument(
        `the grammar cannot be parsed: ${reasons.slice(-2).join('; ') || 'no reason given'}`,
      );
    }
    this.#model = model;
    this.#pointer = pointer;
    this.#scratch = scratch;
  }

  allows(token: number): boolean {
    this.#scratch.set(0, token, 1);
    this.#model.library.functions.llama_sampler_apply(this.#pointer, this.#scratch.array(1));
    return this.#scratch.logit(0) > Number.NEGATIVE_INFINITY;
  }

  /** Sets the logits of all tokens that may not come next to -Infinity. Costs milliseconds for large vocabularies. */
  mask(logits: Float32Array): void {
    const scratch = this.#scratch;
    for (let token = 0; token < logits.length; token++) scratch.set(token, token, logits[token]!);
    this.#model.library.functions.llama_sampler_apply(this.#pointer, scratch.array(logits.length));
    for (let i = 0; i < logits.length; i++) {
      if (scratch.logit(i) === Number.NEGATIVE_INFINITY) logits[scratch.token(i)] = Number.NEGATIVE_INFINITY;
    }
  }

  accept(token: number): void {
    this.#model.library.functions.llama_sampler_accept(this.#pointer, token);
  }

  free(): void {
    this.#model.library.functions.llama_sampler_free(this.#pointer);
  }
}

/** Candidates in the layout of libllama: id, logit, p. One for all grammars of a host. */
export class CandidateMemory {
  readonly #memory;
  readonly #ids: Int32Array;
  readonly #logits: Float32Array;
  readonly #header = bytes(koffi.sizeof(TOKEN_DATA_ARRAY));

  constructor(tokenCount: number) {
    this.#memory = bytes(tokenCount * TOKEN_DATA_BYTES);
    const { buffer } = this.#memory.values;
    this.#ids = new Int32Array(buffer);
    this.#logits = new Float32Array(buffer);
  }

  set(index: number, token: number, logit: number): void {
    this.#ids[index * WORDS_PER_TOKEN] = token;
    this.#logits[index * WORDS_PER_TOKEN + 1] = logit;
  }

  token(index: number): number {
    return this.#ids[index * WORDS_PER_TOKEN]!;
  }

  logit(index: number): number {
    return this.#logits[index * WORDS_PER_TOKEN + 1]!;
  }

  /** The address of a llama_token_data_array over the first `count`. */
  array(count: number): bigint {
    koffi.encode(this.#header.values, TOKEN_DATA_ARRAY, {
      data: this.#memory.address,
      size: count,
      selected: -1,
      sorted: false,
    });
    return this.#header.address;
  }
}
