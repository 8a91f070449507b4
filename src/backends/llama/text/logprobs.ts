// Log probabilities of a token and its best alternatives from raw logits, and the two forms in which the output
// `logprobs` carries them. The engine calls it once per token of the requests that want it, so one pass over the
// vocabulary must do.

export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
  /** 1 for the most probable token of the vocabulary. */
  readonly rank: number;
}

export interface StepLogprobs {
  readonly chosen: TokenLogprob;
  /** The most probable tokens, best first. */
  readonly top: readonly TokenLogprob[];
}

export type LogprobsFormat = 'vllm' | 'openai';

/** JSON has no infinity; OpenAI gives this value for what cannot be chosen. */
const LOGPROB_MIN = -9999;

export function computeLogprobs(
  logits: Float32Array,
  options: { readonly token: number; readonly topCount: number },
): StepLogprobs {
  const { token, topCount } = options;
  const chosenLogit = logits[token] ?? Number.NEGATIVE_INFINITY;
  const topTokens = new Int32Array(topCount);
  const topLogits = new Float64Array(topCount).fill(Number.NEGATIVE_INFINITY);
  let topLength = 0;
  // A token enters the list only above this, which for nearly all of a vocabulary is one comparison.
  let topThreshold = topCount === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  let maximum = Number.NEGATIVE_INFINITY;
  // Σ exp(logit - maximum), scaled anew each time the maximum grows.
  let sum = 0;
  let greaterCount = 0;

  for (let at = 0; at < logits.length; at++) {
    const logit = logits[at]!;
    if (logit > maximum) {
      sum = sum * Math.exp(maximum - logit) + 1;
      maximum = logit;
    } else if (logit > Number.NEGATIVE_INFINITY) {
      sum += Math.exp(logit - maximum);
    }
    if (logit > chosenLogit) greaterCount++;
    if (logit > topThreshold) {
      let place = topLength < topCount ? topLength++ : topCount - 1;
      for (; place > 0 && topLogits[place - 1]! < logit; place--) {
        topLogits[place] = topLogits[place - 1]!;
        topTokens[place] = topTokens[place - 1]!;
      }
      topLogits[place] = logit;
      topTokens[place] = at;
      if (topLength === topCount) topThreshold = topLogits[topCount - 1]!;
    }
  }

  const logSum = maximum + Math.log(sum);
  const logprobOf = (logit: number) => Math.max(LOGPROB_MIN, Math.min(0, logit - logSum));
  const top = Array.from({ length: topLength }, (_, place) => ({
    token: topTokens[place]!,
    logprob: logprobOf(topLogits[place]!),
    rank: place + 1,
  }));
  return { chosen: { token, logprob: logprobOf(chosenLogit), rank: greaterCount + 1 }, top };
}

/** The JSON list that is one element of the output `logprobs`, an entry per token. */
export function encodeLogprobs(
  steps: readonly StepLogprobs[],
  options: { readonly format: LogprobsFormat; readonly pieceOf: (token: number) => Uint8Array },
): string {
  const encode = options.format === 'openai' ? openaiEntry : vllmEntry;
  return `[${steps.map((step) => encode(step, options.pieceOf)).join(',')}]`;
}

/** `{"<token id>": {logprob, rank, decoded_token}}`, the chosen token first; written by hand, as objects sort such keys. */
function vllmEntry({ chosen, top }: StepLogprobs, pieceOf: (token: number) => Uint8Array): string {
  const all = [chosen, ...top.filter(({ token }) => token !== chosen.token)];
  const members = all.map(({ token, logprob, rank }) => {
    const value = { logprob, rank, decoded_token: textOf(pieceOf(token)) };
    return `"${token}":${JSON.stringify(value)}`;
  });
  return `{${members.join(',')}}`;
}

function openaiEntry({ chosen, top }: StepLogprobs, pieceOf: (token: number) => Uint8Array): string {
  const describe = ({ token, logprob }: TokenLogprob) => {
    const bytes = pieceOf(token);
    return { token: textOf(bytes), token_id: token, logprob, bytes: [...bytes] };
  };
  return JSON.stringify({ ...describe(chosen), top: top.map(describe) });
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A piece that is part of a character reads as U+FFFD; `bytes` tells the rest. */
function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
