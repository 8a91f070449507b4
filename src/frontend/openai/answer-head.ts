// What all objects of one answer begin with: id, kind, time, model. Kept as text, since a stream repeats it in every chunk.

import { createId } from './answer-id.ts';
import { epochSecs } from './api-call.ts';
import type { Usage } from './generation-run.ts';
import { fingerprintOf, type TextModel } from './text-model.ts';

/** `{"id":…,…,` without what follows. */
export function createHead(
  model: TextModel,
  options: { readonly idPrefix: string; readonly object: string; readonly asked: string },
): string {
  const head = JSON.stringify({
    id: createId(options.idPrefix),
    object: options.object,
    created: epochSecs(),
    model: options.asked,
    system_fingerprint: fingerprintOf(model.served),
  });
  return `${head.slice(0, -1)},`;
}

export function usageDocument(usage: Usage | undefined): object | null {
  if (usage === undefined) return null;
  const { promptTokens, completionTokens, cachedTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cachedTokens === undefined ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
  };
}
