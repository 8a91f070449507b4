// The name that someone probably meant: used where a field or an enum value is unknown.

/** The candidate nearest to `name`, if near enough to be worth suggesting. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  // A third of the letters may be wrong: more, and a suggestion misleads.
  let best = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  let nearest: string | undefined;
  for (const candidate of candidates) {
    const length = candidate.length;
    if (Math.abs(length - wanted.length) >= best) continue;
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/** Levenshtein with swaps of neighbours as one edit; three rows. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, beforeLast[j - 2]! + 1);
      }
      row.push(distance);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
