// From single measurements to one row per point: medians, and the ratio of the two servers with its spread. Pure.

export const METRICS = ['inferPerS', 'p50Us', 'p95Us', 'p99Us'];

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** samples: [{ round, model, transport, concurrency, server, inferPerS, …, isStable }] → points in the order of measuring. */
export function summarize(samples) {
  const groups = new Map();
  for (const sample of samples) {
    const key = `${sample.model} ${sample.transport} ${sample.concurrency}`;
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  return [...groups.values()].map(summarizePoint);
}

function summarizePoint(samples) {
  const { model, transport, concurrency } = samples[0];
  const nereid = samples.filter((sample) => sample.server === 'nereid');
  const triton = samples.filter((sample) => sample.server === 'triton');
  return {
    model,
    transport,
    concurrency,
    nereid: summarizeServer(nereid),
    ...(triton.length > 0
      ? { triton: summarizeServer(triton), ratio: summarizeRatio({ nereid, triton }) }
      : {}),
  };
}

function summarizeServer(samples) {
  const medians = METRICS.map((metric) => [metric, round(median(samples.map((sample) => sample[metric])))]);
  return {
    ...Object.fromEntries(medians),
    inferPerSByRound: samples.map((sample) => round(sample.inferPerS)),
    unstableCount: samples.filter((sample) => !sample.isStable).length,
  };
}

/** Of the pairs that were measured one after the other: what slows the whole machine cancels out. */
function summarizeRatio({ nereid, triton }) {
  const ratios = nereid.flatMap((sample) => {
    const other = triton.find((candidate) => candidate.round === sample.round);
    return other === undefined ? [] : [sample.inferPerS / other.inferPerS];
  });
  return {
    median: round(median(ratios)),
    min: round(Math.min(...ratios)),
    max: round(Math.max(...ratios)),
  };
}

/** Four digits say more than the noise allows. */
function round(value) {
  return Number(value.toPrecision(4));
}
