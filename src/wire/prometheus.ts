// Prometheus text exposition 0.0.4, written as prometheus-cpp writes it.
// Pure: families in, text out; the metrics frontend sends it.

import type { HistogramSample, MetricFamily, MetricLabels, SummarySample } from '../domain/metric-family.ts';

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; charset=utf-8';

export function renderPrometheus(families: Iterable<MetricFamily>): string {
  let text = '';
  for (const family of families) {
    // a family without series is not shown, as in prometheus-cpp
    if (family.samples.length === 0) continue;
    text += `# HELP ${family.name} ${escapeHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n`;
    text += renderSamples(family);
  }
  return text;
}

function renderSamples(family: MetricFamily): string {
  switch (family.type) {
    case 'counter':
    case 'gauge':
      return family.samples
        .map((sample) => `${family.name}${labelText(sample.labels)} ${numberText(sample.value)}\n`)
        .join('');
    case 'histogram':
      return family.samples.map((sample) => renderHistogram(family.name, sample)).join('');
    case 'summary':
      return family.samples.map((sample) => renderSummary(family.name, sample)).join('');
  }
}

function renderHistogram(name: string, sample: HistogramSample): string {
  let text = renderTotals(name, sample);
  for (const bucket of sample.buckets) {
    const labels = labelText(sample.labels, ['le', numberText(bucket.bound)]);
    text += `${name}_bucket${labels} ${numberText(bucket.count)}\n`;
  }
  return text;
}

function renderSummary(name: string, sample: SummarySample): string {
  let text = renderTotals(name, sample);
  for (const { quantile, value } of sample.quantiles) {
    text += `${name}${labelText(sample.labels, ['quantile', numberText(quantile)])} ${numberText(value)}\n`;
  }
  return text;
}

function renderTotals(name: string, sample: HistogramSample | SummarySample): string {
  const labels = labelText(sample.labels);
  return `${name}_count${labels} ${numberText(sample.count)}\n${name}_sum${labels} ${numberText(sample.sum)}\n`;
}

function labelText(labels: MetricLabels, extra?: readonly [string, string]): string {
  if (labels.length === 0 && extra === undefined) return '';
  const pairs = labels.map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  if (extra !== undefined) pairs.push(`${extra[0]}="${extra[1]}"`);
  return `{${pairs.join(',')}}`;
}

function numberText(value: number): string {
  // prometheus-cpp's spelling; scrapers read it without regard to case
  if (Number.isNaN(value)) return 'Nan';
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  if (value === Number.NEGATIVE_INFINITY) return '-Inf';
  return String(value);
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`));
}

function escapeHelp(help: string): string {
  return help.replace(/[\\\n]/g, (c) => (c === '\n' ? '\\n' : '\\\\'));
}
