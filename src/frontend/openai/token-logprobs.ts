// The log probabilities of tokens: read from the output `logprobs`, in our form or in vLLM's, and written in the two forms of
// OpenAI's API. Pure.

import { internal } from '../../domain/status.ts';

interface TokenAlternative {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface TokenLogprob extends TokenAlternative {
  readonly top: readonly TokenAlternative[];
}

/** As the API writes them; each list has an element for each token. */
export type LogprobColumns = Readonly<Record<string, readonly unknown[] | null>>;

/** JSON has no infinity; OpenAI writes this for a token that cannot come. */
const IMPOSSIBLE = -9999;

/** One element of the output: a JSON list with one entry for each new token, or null. */
export function parseLogprobs(text: string): TokenLogprob[] {
  if (text === '' || text === 'null') return [];
  try {
    // The keys of vLLM's objects are token ids, which JSON.parse would sort: the first is the token that was drawn.
    const list: unknown = JSON.parse(text.replace(/"(\d+)":\s*\{/g, '"#$1":{'));
    if (Array.isArray(list)) return list.map(readEntry);
  } catch {
    // Named below.
  }
  throw internal("the model's output 'logprobs' cannot be read");
}

interface OurEntry {
  readonly token: string;
  readonly logprob: number | null;
  readonly bytes?: readonly number[];
  readonly top?: readonly OurEntry[];
}

interface VllmEntry {
  readonly logprob: number | null;
  readonly decoded_token: string | null;
}

function readEntry(entry: OurEntry | Readonly<Record<string, VllmEntry>>): TokenLogprob {
  if (typeof entry.token === 'string') {
    const ours = entry as OurEntry;
    return { ...readOurs(ours), top: (ours.top ?? []).map(readOurs) };
  }
  const all = Object.values(entry as Readonly<Record<string, VllmEntry>>).map(readVllm);
  if (all.length === 0) throw internal('no token');
  return { ...all[0]!, top: [...all].sort((a, b) => b.logprob - a.logprob) };
}

function readOurs({ token, logprob, bytes }: OurEntry): TokenAlternative {
  return { token, logprob: logprob ?? IMPOSSIBLE, bytes: bytes ?? [...Buffer.from(token)] };
}

function readVllm({ logprob, decoded_token }: VllmEntry): TokenAlternative {
  const token = decoded_token ?? '';
  return { token, logprob: logprob ?? IMPOSSIBLE, bytes: [...Buffer.from(token)] };
}

/** vLLM reports the drawn token beside the best `count`; OpenAI the best `count` alone. */
function best(entry: TokenLogprob, count: number): readonly TokenAlternative[] {
  return entry.top.slice(0, count);
}

export function chatLogprobs(entries: readonly TokenLogprob[], count: number): LogprobColumns {
  return {
    content: entries.map((entry) => ({
      token: entry.token,
      logprob: entry.logprob,
      bytes: entry.bytes,
      top_logprobs: best(entry, count).map(({ token, logprob, bytes }) => ({ token, logprob, bytes })),
    })),
    refusal: null,
  };
}

/** `textOffset` is where the first of them begins in the text of the choice. */
export function completionLogprobs(
  entries: readonly TokenLogprob[],
  { count, textOffset }: { readonly count: number; readonly textOffset: number },
): LogprobColumns {
  let offset = textOffset;
  const offsets = entries.map(({ token }) => {
    const start = offset;
    offset += token.length;
    return start;
  });
  return {
    tokens: entries.map(({ token }) => token),
    token_logprobs: entries.map(({ logprob }) => logprob),
    top_logprobs:
      count === 0
        ? null
        : entries.map((entry) =>
            Object.fromEntries(best(entry, count).map(({ token, logprob }) => [token, logprob])),
          ),
    text_offset: offsets,
  };
}
