// What is proposed for the next step of texts that are running: by the draft model, or by looking up what the text has said
// before. Called by the engine.

import type { Choice } from './choice.ts';
import type { DraftRequest } from './drafter.ts';
import type { EngineOptions } from './engine.ts';
import type { Generation } from './generation.ts';

/** By the id of the request. */
export type Proposals = ReadonlyMap<number, readonly number[]>;

export interface DecodingText {
  readonly id: number;
  readonly generation: Generation;
  readonly choice: Choice;
  readonly sequence: number;
}

type ProposeOptions = Pick<EngineOptions, 'drafter' | 'draftTokens' | 'draftSequencesMax' | 'limits'>;

/** Undefined at once, without a turn of promises, where nobody would propose anything: in most models, before every step. */
export function propose(
  decoding: readonly DecodingText[],
  options: ProposeOptions,
): Promise<Proposals | undefined> | undefined {
  const { drafter, draftSequencesMax } = options;
  if (decoding.length === 0 || decoding.length > draftSequencesMax) return undefined;
  if (drafter === undefined && !decoding.some(({ choice }) => choice.isLookup)) return undefined;
  return collect(decoding, options);
}

async function collect(
  decoding: readonly DecodingText[],
  { drafter, draftTokens, limits }: ProposeOptions,
): Promise<Proposals | undefined> {
  const proposals = new Map<number, readonly number[]>();
  const drafts: DraftRequest[] = [];
  for (const { id, choice, generation, sequence } of decoding) {
    const count = Math.min(draftTokens, generation.maxTokens - choice.tokens.length - 1);
    if (count <= 0) continue;
    // A text that has been shifted is another one than the draft model has read.
    const length = generation.prompt.length + choice.tokens.length + count;
    if (drafter !== undefined && generation.isDrafted && length < limits.contextLength) {
      drafts.push({ id, sequence, prompt: generation.prompt, generated: choice.tokens, count });
    } else {
      const proposed = choice.propose(count);
      if (proposed.length > 0) proposals.set(id, proposed);
    }
  }
  for (const [id, proposed] of (await drafter?.propose(drafts)) ?? []) proposals.set(id, proposed);
  return proposals.size === 0 ? undefined : proposals;
}
