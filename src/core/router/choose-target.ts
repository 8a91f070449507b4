// Which target a request goes to: by chance, or by a key that always leads to the same one. Pure; router-model.ts calls it
// with the weights that count now (0 where a target cannot be used).

/** The index of the target, or -1 when none has a weight. `random` is uniform in [0, 1). */
export function chooseByChance(weights: readonly number[], random: number): number {
  let total = 0;
  for (const weight of weights) total += weight;
  let left = random * total;
  let last = -1;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!;
    if (weight === 0) continue;
    last = i;
    left -= weight;
    if (left < 0) return i;
  }
  // Rounding may leave a crumb behind the last one.
  return last;
}

/**
 * Weighted rendezvous hashing: each target draws a number for the key, the highest wins. A key never moves between
 * targets whose weights did not change, and all servers choose alike. `seeds` come from the names of the targets.
 */
export function chooseByKey(weights: readonly number[], seeds: readonly number[], key: string): number {
  let best = -1;
  let bestScore = 0;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!;
    if (weight === 0) continue;
    const score = -weight / Math.log(uniformOf(key, seeds[i]!));
    if (score <= bestScore) continue;
    best = i;
    bestScore = score;
  }
  return best;
}

export function seedOf(targetName: string): number {
  return Math.floor(uniformOf(targetName, 0) * 2 ** 32);
}

const RANGE = 2 ** 53;

/**
 * In (0, 1), from 53 bits of a text and a seed. It must stay as it is for ever: another hash would send every user to
 * another target at the next update of the server.
 */
export function uniformOf(text: string, seed: number): number {
  let a = 0xdeadbeef ^ seed;
  let b = 0x41c6ce57 ^ seed;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2654435761);
    b = Math.imul(b ^ unit, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  const hash = (b & 0x1fffff) * 2 ** 32 + (a >>> 0);
  return (hash + 0.5) / RANGE;
}
