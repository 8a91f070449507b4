// "Did you mean": the known word nearest to a mistyped one.
// Used for flags and subcommands; a guess that is not near is no guess.

/** More edits than this, or than a third of the word, and the guess would be noise. */
const EDITS_MAX = 3;

export function closest(word: string, known: readonly string[]): string | undefined {
  if (word.length < 2) return undefined;
  let best: string | undefined;
  let bestEdits = Math.min(EDITS_MAX, Math.max(1, Math.floor(word.length / 3))) + 1;
  for (const candidate of known) {
    const edits = editDistance(word, candidate);
    if (edits < bestEdits) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best ?? uniquePrefix(word, known);
}

/** `model-repo` is far from `model-repository` in edits, but nothing else starts with it. */
function uniquePrefix(word: string, known: readonly string[]): string | undefined {
  const matches = known.filter((candidate) => candidate.startsWith(word));
  return matches.length === 1 ? matches[0] : undefined;
}

/** Levenshtein, one row at a time. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[j]! + 1, current[j - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}
