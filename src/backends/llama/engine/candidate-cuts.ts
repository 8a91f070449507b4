// Where a list of candidates ends: after the k largest, after the heaviest or the nearest that weigh enough. Pure; called by
// candidate-list.ts. None of them sorts more than a few of its values.

/** Distances are below 64, and vocabularies smaller than a million: both fit into the 53 bits of a number. */
const DISTANCE_STEPS = 2 ** 26;
const PLACES_MAX = 2 ** 20;
/** Of the information around the average, in nats; doubled until it holds enough. */
const RADIUS_FIRST = 0.5;

/**
 * Where the heaviest that weigh `wanted` together end: all above `least` are among them, and `ties` of those equal to it.
 * Looks only at the side on which the end is, again and again, so that it takes a few passes and no sort.
 */
export function findCut(weights: Float64Array, wanted: number): { least: number; ties: number } {
  let rest = weights;
  let sum = 0;
  for (;;) {
    const pivot = rest[rest.length >> 1]!;
    let above = 0;
    let aboveCount = 0;
    let equalCount = 0;
    for (let i = 0; i < rest.length; i++) {
      const weight = rest[i]!;
      if (weight > pivot) {
        above += weight;
        aboveCount++;
      } else if (weight === pivot) equalCount++;
    }
    const missing = wanted - sum - above;
    if (missing <= 0 && aboveCount > 0) {
      rest = rest.filter((weight) => weight > pivot);
      continue;
    }
    const ties = Math.max(Math.ceil(missing / pivot), 1);
    if (ties <= equalCount || aboveCount + equalCount === rest.length)
      return { least: pivot, ties: Math.min(ties, equalCount) };
    sum += above + equalCount * pivot;
    rest = rest.filter((weight) => weight < pivot);
  }
}

/**
 * The places of the nearest, in order, as many as weigh `wanted` or a few more. Each is in one number with its distance,
 * because an array of numbers sorts much faster than one that asks a function; and only those within a radius are sorted.
 */
export function nearestFirst(distances: Float64Array, weights: Float64Array, wanted: number): Int32Array {
  let radius = RADIUS_FIRST;
  let count = 0;
  for (let sum = 0; (count === 0 || sum < wanted) && count < distances.length; radius *= 2) {
    sum = 0;
    count = 0;
    for (let i = 0; i < distances.length; i++) {
      if (distances[i]! > radius) continue;
      sum += weights[i]!;
      count++;
    }
  }
  radius /= 2;
  const keys = new Float64Array(count);
  let filled = 0;
  for (let i = 0; i < distances.length; i++) {
    if (distances[i]! <= radius) keys[filled++] = Math.round(distances[i]! * DISTANCE_STEPS) * PLACES_MAX + i;
  }
  keys.sort();
  return Int32Array.from(keys, (key) => key % PLACES_MAX);
}

/** Of the first `count`, through a heap of the k largest with the smallest on top. */
export function kthLargest(values: Float32Array | Float64Array, count: number, k: number): number {
  const heap = Float64Array.from(values.subarray(0, k));
  for (let i = (k >> 1) - 1; i >= 0; i--) sink(heap, i);
  for (let i = k; i < count; i++) {
    const value = values[i]!;
    if (value <= heap[0]!) continue;
    heap[0] = value;
    sink(heap, 0);
  }
  return heap[0]!;
}

function sink(heap: Float64Array, start: number): void {
  const value = heap[start]!;
  let hole = start;
  for (;;) {
    let child = hole * 2 + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child++;
    if (heap[child]! >= value) break;
    heap[hole] = heap[child]!;
    hole = child;
  }
  heap[hole] = value;
}
