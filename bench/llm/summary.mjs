// From single measurements to one row per point: medians of every system, and its share of the limit with the spread. Pure.
import { median } from '../summary.mjs';

const METRICS = ['tokensPerS', 'ttftP50Ms', 'ttftP99Ms', 'gapP50Ms', 'gapP99Ms', 'clientShare'];
export const LIMIT = 'libllama';

/** samples: [{ round, scenario, concurrency, system, tokensPerS, … }] → points in the order of measuring. */
export function summarize(samples) {
  const points = new Map();
  for (const sample of samples) {
    const key = `${sample.scenario} ${sample.concurrency}`;
    points.set(key, [...(points.get(key) ?? []), sample]);
  }
  return [...points.values()].map(summarizePoint);
}

function summarizePoint(samples) {
  const { scenario, concurrency } = samples[0];
  const names = [...new Set(samples.map(({ system }) => system))].sort();
  const systems = names.map((name) => {
    const own = samples.filter(({ system }) => system === name);
    return [name, { ...summarizeSystem(own), ...compare({ own, samples }) }];
  });
  return { scenario, concurrency, systems: Object.fromEntries(systems) };
}

function summarizeSystem(samples) {
  return {
    ...Object.fromEntries(
      METRICS.map((metric) => [metric, round(median(samples.map((sample) => sample[metric])))]),
    ),
    requestCount: samples.reduce((sum, { requestCount }) => sum + requestCount, 0),
    tokensPerSByRound: samples.map(({ tokensPerS }) => round(tokensPerS)),
  };
}

/** Against the limit and against llama-server of the same round, minutes apart at most: what slows the machine cancels out. */
function compare({ own, samples }) {
  const against = (name) => {
    const ratios = own.flatMap((sample) => {
      const other = samples.find(({ system, round: turn }) => system === name && turn === sample.round);
      return other === undefined || other === sample ? [] : [sample.tokensPerS / other.tokensPerS];
    });
    if (ratios.length === 0) return undefined;
    return {
      median: round(median(ratios)),
      min: round(Math.min(...ratios)),
      max: round(Math.max(...ratios)),
    };
  };
  const ofLimit = against(LIMIT);
  const ofServer = against('llama-server');
  return { ...(ofLimit && { ofLimit }), ...(ofServer && { ofServer }) };
}

/** Four digits say more than the noise allows. */
function round(value) {
  return Number(value.toPrecision(4));
}
