// Whether a draft model and its target mean the same by their tokens: a draft of another family is never right and only
// costs time. Pure; llama-backend.ts asks at load.

export interface Vocabulary {
  readonly tokenCount: number;
  tokenText(token: number): string;
}

/** Models of one family are padded to different sizes, Qwen's by 128 tokens; these are never generated. */
const PADDING_MAX = 128;

/** What differs, or undefined when they fit. */
export function findVocabularyDifference(draft: Vocabulary, target: Vocabulary): string | undefined {
  if (Math.abs(draft.tokenCount - target.tokenCount) > PADDING_MAX) {
    return `it has ${draft.tokenCount} tokens, the model ${target.tokenCount}`;
  }
  const common = Math.min(draft.tokenCount, target.tokenCount);
  for (let token = 0; token < common; token++) {
    const [ours, theirs] = [draft.tokenText(token), target.tokenText(token)];
    if (ours !== theirs && !isPadding(ours) && !isPadding(theirs)) {
      return `token ${token} is ${JSON.stringify(ours)}, in the model ${JSON.stringify(theirs)}`;
    }
  }
  return undefined;
}

/** As the converter to GGUF names tokens that the tokenizer does not have. */
function isPadding(text: string): boolean {
  return /^\[PAD\d+\]$/.test(text);
}
