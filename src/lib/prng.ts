// A seeded random number generator (xoshiro128**), so that simulations and tests can be repeated exactly.
// Not for secrets.

export interface Prng {
  /** Uniform in [0, 2^32). */
  uint32(): number;
  /** Uniform in [0, 1), 53 bits. */
  float(): number;
  /** Uniform integer in [low, high], both included. */
  integer(low: number, high: number): number;
  /** Exponentially distributed with the given mean: the gaps of Poisson arrivals. */
  exponential(mean: number): number;
  boolean(probability?: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** In place. */
  shuffle<T>(items: T[]): T[];
}

export function createPrng(seed: number): Prng {
  const next = splitmix32(seed);
  let a = next();
  let b = next();
  let c = next();
  let d = next();

  function uint32(): number {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotateLeft(d, 11);
    return result;
  }

  function float(): number {
    return ((uint32() >>> 5) * 67108864 + (uint32() >>> 6)) / 9007199254740992;
  }

  function integer(low: number, high: number): number {
    return low + Math.floor(float() * (high - low + 1));
  }

  return {
    uint32,
    float,
    integer,
    exponential: (mean) => -mean * Math.log(1 - float()),
    boolean: (probability = 0.5) => float() < probability,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError('pick from an empty list');
      return items[integer(0, items.length - 1)]!;
    },
    shuffle<T>(items: T[]): T[] {
      for (let i = items.length - 1; i > 0; i--) {
        const j = integer(0, i);
        const item = items[i]!;
        items[i] = items[j]!;
        items[j] = item;
      }
      return items;
    },
  };
}

function rotateLeft(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

/** Spreads one seed over the state; xoshiro must not start from zeros. */
function splitmix32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) | 0;
  };
}
