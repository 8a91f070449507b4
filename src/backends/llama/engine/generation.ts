// What the engine is asked for: the texts of one request, and whom to tell of them. requests/generation-responder.ts is the one
// that clients' requests become.

import type { StatusError } from '../../../domain/status.ts';
import type { Choice } from './choice.ts';

export interface Generation {
  readonly prompt: readonly number[];
  /** Each becomes a sequence of its own; they share the cells of the prompt. */
  readonly choices: readonly Choice[];
  /** 0: none, else one more than the index in `adapters`. */
  readonly adapter: number;
  readonly priority: number;
  readonly maxTokens: number;
  readonly isDrafted: boolean;
  /** Its first step begins. */
  onStarted(cachedTokens: number): void;
  /** Some of its choices have news, or the last one is finished. */
  onNews(): void;
  /** No more will come. */
  onError(error: StatusError): void;
}

/** All its texts are finished. */
export function isOver({ choices }: Generation): boolean {
  return choices.every((choice) => choice.finishReason !== undefined);
}
