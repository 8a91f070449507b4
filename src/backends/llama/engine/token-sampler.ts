// Chooses the next token of one sequence from its logits. Ours and not libllama's chain: that one builds a list of 12 bytes
// per token of the vocabulary for every choice, which at 64 sequences costs more than a step of a small model on a GPU.
// One per choice of a request; the engine calls `choose` once for each output of a step.

import type { Prng } from '../../../lib/prng.ts';
import type { CandidateList } from './candidate-list.ts';
import { TokenWindow } from './token-window.ts';

export interface SamplerSettings {
  /** 0: the most likely token. */
  readonly temperature: number;
  /** 0: off. */
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly typicalP: number;
  readonly repetitionPenalty: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** Tokens that the penalties look at; -1 for all. */
  readonly penaltyLastTokens: number;
  readonly logitBias: ReadonlyMap<number, number>;
}

/** Of 256 draws one is expected to hit in the worst case, so this many miss with a probability of e^-256. */
const DRAWS_MAX = 65536;

export class TokenSampler {
  readonly #settings: SamplerSettings;
  readonly #prng: Prng;
  readonly #candidates: CandidateList;
  /** `#seen` has the tokens of the prompt as well. Both stay empty where no penalty asks for them. */
  readonly #generated: TokenWindow;
  readonly #seen: TokenWindow;
  readonly #hasPenalty: boolean;

  /** `candidates` is scratch memory that the samplers of one engine share. */
  constructor(settings: SamplerSettings, prompt: readonly number[], prng: Prng, candidates: CandidateList) {
    this.#settings = settings;
    this.#prng = prng;
    this.#candidates = candidates;
    this.#hasPenalty =
      settings.repetitionPenalty !== 1 || settings.presencePenalty !== 0 || settings.frequencyPenalty !== 0;
    this.#generated = new TokenWindow(settings.penaltyLastTokens);
    this.#seen = new TokenWindow(settings.penaltyLastTokens);
    if (settings.repetitionPenalty !== 1) for (const token of prompt) this.#seen.add(token);
  }

  /** True when the choice is the largest logit and nothing else, which a device can make itself. */
  get isPlainGreedy(): boolean {
    return this.#settings.temperature === 0 && !this.#hasPenalty && this.#settings.logitBias.size === 0;
  }

  /** Changes the logits in place; -Infinity is never chosen while there is another. */
  choose(logits: Float32Array): number {
    this.#adjust(logits);
    return this.#settings.temperature === 0 ? largest(logits) : this.#draw(logits);
  }

  /** Again from the same logits, after more of them were masked; the adjustments are already in. */
  chooseAgain(logits: Float32Array): number {
    return this.#settings.temperature === 0 ? largest(logits) : this.#draw(logits);
  }

  accept(token: number): void {
    if (!this.#hasPenalty) return;
    this.#generated.add(token);
    if (this.#settings.repetitionPenalty !== 1) this.#seen.add(token);
  }

  #adjust(logits: Float32Array): void {
    const { logitBias, repetitionPenalty, presencePenalty, frequencyPenalty } = this.#settings;
    if (repetitionPenalty !== 1) {
      for (const token of this.#seen.counts.keys()) {
        const logit = logits[token]!;
        logits[token] = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
      }
    }
    if (presencePenalty !== 0 || frequencyPenalty !== 0) {
      for (const [token, count] of this.#generated.counts) {
        logits[token] = logits[token]! - presencePenalty - frequencyPenalty * count;
      }
    }
    for (const [token, bias] of logitBias) if (token < logits.length) logits[token] = logits[token]! + bias;
  }

  #draw(logits: Float32Array): number {
    const { temperature, topK, topP, minP, typicalP } = this.#settings;
    const candidates = this.#candidates;
    candidates.read(logits, temperature);
    if (candidates.isEmpty) return 0;
    if (topK > 0) candidates.takeTopK(topK, minP);
    else if (minP > 0 || typicalP < 1) candidates.takeAll(minP);
    else return topP < 1 ? this.#drawFromNucleus(topP) : this.#drawFromAll();
    if (typicalP < 1) candidates.keepTypical(typicalP);
    if (topP < 1) candidates.keepTopP(topP);
    return candidates.draw(this.#prng.float());
  }

  #drawFromNucleus(topP: number): number {
    this.#candidates.takeTopP(topP);
    return this.#candidates.draw(this.#prng.float());
  }

  #drawFromAll(): number {
    for (let i = 0; i < DRAWS_MAX; i++) {
      const token = this.#candidates.drawFromAll(this.#prng.float());
      if (token >= 0) return token;
    }
    return this.#candidates.mostLikely;
  }
}

/** The first of the largest. */
export function largest(logits: Float32Array): number {
  let best = 0;
  let bestLogit = logits[0]!;
  for (let i = 1; i < logits.length; i++) {
    const logit = logits[i]!;
    if (logit > bestLogit) {
      bestLogit = logit;
      best = i;
    }
  }
  return best;
}
