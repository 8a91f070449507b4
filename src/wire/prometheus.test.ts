// The exposition text, character by character.
// Escapes matter most: a model's name is a user's text.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderPrometheus } from './prometheus.ts';

test('counters and gauges are one line each, integers without decimals', () => {
  const text = renderPrometheus([
    {
      type: 'counter',
      name: 'nv_inference_count',
      help: 'Number of inferences performed (does not include cached requests)',
      samples: [
        {
          labels: [
            ['model', 'simple'],
            ['version', '1'],
          ],
          value: 21,
        },
      ],
    },
    { type: 'gauge', name: 'nv_cpu_utilization', help: 'CPU', samples: [{ labels: [], value: 0.25 }] },
    { type: 'gauge', name: 'empty', help: 'no series, no family', samples: [] },
  ]);
  assert.equal(
    text,
    `# HELP nv_inference_count Number of inferences performed (does not include cached requests)
# TYPE nv_inference_count counter
nv_inference_count{model="simple",version="1"} 21
# HELP nv_cpu_utilization CPU
# TYPE nv_cpu_utilization gauge
nv_cpu_utilization 0.25
`,
  );
});

test('a histogram has count, sum and cumulative buckets', () => {
  const text = renderPrometheus([
    {
      type: 'histogram',
      name: 'h',
      help: 'x',
      samples: [
        {
          labels: [['model', 'm']],
          buckets: [
            { bound: 0.5, count: 1 },
            { bound: Number.POSITIVE_INFINITY, count: 3 },
          ],
          sum: 7.5,
          count: 3,
        },
      ],
    },
  ]);
  assert.equal(
    text,
    `# HELP h x
# TYPE h histogram
h_count{model="m"} 3
h_sum{model="m"} 7.5
h_bucket{model="m",le="0.5"} 1
h_bucket{model="m",le="+Inf"} 3
`,
  );
});

test('a summary has its quantiles, Nan when there is none', () => {
  const text = renderPrometheus([
    {
      type: 'summary',
      name: 's',
      help: 'x',
      samples: [{ labels: [], quantiles: [{ quantile: 0.5, value: Number.NaN }], sum: 0, count: 0 }],
    },
  ]);
  assert.equal(text, '# HELP s x\n# TYPE s summary\ns_count 0\ns_sum 0\ns{quantile="0.5"} Nan\n');
});

test('label values and help texts cannot break out of their line', () => {
  const text = renderPrometheus([
    { type: 'gauge', name: 'g', help: 'a\nb\\c', samples: [{ labels: [['m', 'x"} 1\n\\']], value: 1 }] },
  ]);
  assert.equal(text, '# HELP g a\\nb\\\\c\n# TYPE g gauge\ng{m="x\\"} 1\\n\\\\"} 1\n');
});
