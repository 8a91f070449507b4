// Text to tokens for requests: what is short right here, what is long on a thread of its own, and of a text whose beginning is
// known only the rest. Used by GenerationBuilder.

import type { LlamaModel, TokenizeOptions } from '../library/model.ts';
import { TokenMemory } from './token-memory.ts';

/** Characters that are tokenized at once: about 5 ms of the host's event loop, where a CPU has no core for another thread. */
const INLINE_MAX = 16_384;
/** Half a millisecond, in which this thread does not give a device its next step. */
const INLINE_MAX_ON_DEVICE = 1024;

/**
 * `tokenizer.ggml.pre` of those that never put a letter, a space and a letter into one token, as libllama writes their rules.
 * Others do, or have not been looked at: theirs are always tokenized whole.
 */
const WORD_BY_WORD = new Set(
  (
    'gpt-2 phi-2 mpt olmo starcoder refact command-r smollm codeshell exaone minerva-7b llama3 llama-v3 llama-bpe falcon ' +
    'falcon3 falcon-h1 pixtral lfm2 dbrx smaug-bpe qwen2 qwen35 deepseek-r1-qwen stablelm2 hunyuan glm4 chatglm-bpe ' +
    'tekken grok-2 seed-coder deepseek-llm deepseek-coder deepseek-v3 gpt-4o llama4 minimax-m2'
  ).split(' '),
);

/** What is asked of a model here. */
export type TokenizingModel = Pick<LlamaModel, 'metadata' | 'isEndAdded' | 'tokenize' | 'tokenizeAside'>;

type Tokens = number[] | Promise<number[]>;

export class PromptTokenizer {
  readonly #model: TokenizingModel;
  readonly #inlineMax: number;
  /** Until a cut shows otherwise. */
  #isWordByWord: boolean;
  /** Texts are cut into the same tokens only under the same options. */
  readonly #memories = new Map<string, TokenMemory>();

  constructor(model: TokenizingModel, hasDevice: boolean) {
    this.#model = model;
    this.#inlineMax = hasDevice ? INLINE_MAX_ON_DEVICE : INLINE_MAX;
    this.#isWordByWord =
      !model.isEndAdded &&
      model.metadata('tokenizer.ggml.model') === 'gpt2' &&
      WORD_BY_WORD.has(model.metadata('tokenizer.ggml.pre') ?? '');
  }

  tokenize(text: string, options: TokenizeOptions): Tokens {
    if (!this.#isWordByWord) return this.#ask(text, options);
    const memory = this.#memoryOf(options);
    const known = memory.find(text);
    const cut = memory.noteText(text, known?.cut ?? 0);
    const tokens =
      known === undefined
        ? this.#ask(text, options)
        : after(this.#ask(text.slice(known.cut), { ...options, isSpecialAdded: false }), (rest) => [
            ...known.tokens,
            ...rest,
          ]);
    return cut === undefined ? tokens : after(tokens, (whole) => this.#learn({ text, cut, whole, options }));
  }

  /** Nobody waits for it. */
  #learn(learnt: { text: string; cut: number; whole: number[]; options: TokenizeOptions }): number[] {
    const { text, cut, whole, options } = learnt;
    const end = this.#ask(text.slice(cut), { ...options, isSpecialAdded: false });
    void Promise.resolve(end).then(
      (tokens) => {
        const length = whole.length - tokens.length;
        const isCut = tokens.every((token, i) => token === whole[length + i]);
        if (isCut) this.#memoryOf(options).learn(text, cut, whole.slice(0, length));
        else this.#isWordByWord = false;
      },
      // The tokenizer's thread has ended; who asks next is told.
      () => {},
    );
    return whole;
  }

  #ask(text: string, options: TokenizeOptions): Tokens {
    return text.length > this.#inlineMax
      ? this.#model.tokenizeAside(text, options)
      : this.#model.tokenize(text, options);
  }

  #memoryOf({ isSpecialAdded, isSpecialParsed }: TokenizeOptions): TokenMemory {
    const key = `${isSpecialAdded} ${isSpecialParsed}`;
    let memory = this.#memories.get(key);
    if (memory === undefined) {
      memory = new TokenMemory();
      this.#memories.set(key, memory);
    }
    return memory;
  }
}

function after(tokens: Tokens, change: (tokens: number[]) => number[]): Tokens {
  return tokens instanceof Promise ? tokens.then(change) : change(tokens);
}
