// Draws one run of the LLM bench as a small SVG: per point a bar for each system, as long as its share of libllama's own
// throughput, with the spread of the rounds as a whisker and a line at the limit. Pure.
import { LIMIT } from './summary.mjs';

const WIDTH = 820;
const LEFT = 250;
const RIGHT = 210;
const TOP = 46;
const BAR = 14;
const STEP = 19;
const GROUP_GAP = 9;
const COLORS = { nereid: '#1f8a70', 'llama-server': '#8a7a5c', 'node-llama-cpp': '#b08bbb' };
const OTHER_COLOR = '#9aa5b1';
const STYLE = [
  'text { font: 12px system-ui, sans-serif; fill: #333 }',
  '.title { font-size: 14px; font-weight: 600 }',
  '.faint { fill: #777 }',
  '@media (prefers-color-scheme: dark) { text { fill: #ddd } .faint { fill: #999 } }',
].join(' ');

export function drawChart({ date, commit, points }) {
  const bars = layOut(points);
  const longest = Math.max(1.1, ...bars.map(({ system }) => system.ofLimit.max));
  const x = (ratio) => LEFT + (ratio / longest) * (WIDTH - LEFT - RIGHT);
  const height = (bars.at(-1)?.y ?? TOP) + STEP + 34;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Throughput relative to libllama alone">`,
    `<style>${STYLE}</style>`,
    '<text class="title" x="12" y="22">Tokens per second ÷ libllama alone: longer is better</text>',
    ...bars.map((bar) => drawBar({ ...bar, x })),
    `<line x1="${fixed(x(1))}" x2="${fixed(x(1))}" y1="${TOP - 8}" y2="${height - 26}" stroke="#888" stroke-dasharray="3 3"/>`,
    `<text class="faint" x="${fixed(x(1))}" y="${height - 10}" text-anchor="middle">the limit</text>`,
    `<text class="faint" x="12" y="${height - 10}">${date.slice(0, 10)} ${commit}</text>`,
    '</svg>',
    '',
  ].join('\n');
}

/** One bar under the other, with a little room between points. */
function layOut(points) {
  let y = TOP;
  return points.flatMap((point) => {
    const limit = point.systems[LIMIT];
    const compared = Object.entries(point.systems).filter(([, system]) => system.ofLimit !== undefined);
    const bars = compared.map(([name, system], i) => {
      const bar = { point, name, system, limit, y, isFirst: i === 0 };
      y += STEP;
      return bar;
    });
    y += GROUP_GAP;
    return bars;
  });
}

function drawBar({ point, name, system, limit, y, isFirst, x }) {
  const { ofLimit: ratio } = system;
  const middle = y + BAR / 2;
  const rates = `${rate(system)} of ${rate(limit)} tok/s`;
  const label = `${point.scenario}, ${point.concurrency} stream${point.concurrency === 1 ? '' : 's'}`;
  return [
    isFirst ? `<text class="faint" x="12" y="${middle + 4}">${label}</text>` : '',
    `<text x="${LEFT - 10}" y="${middle + 4}" text-anchor="end">${name}</text>`,
    `<rect x="${LEFT}" y="${y}" width="${fixed(x(ratio.median) - LEFT)}" height="${BAR}" rx="2" fill="${COLORS[name] ?? OTHER_COLOR}"/>`,
    `<line x1="${fixed(x(ratio.min))}" x2="${fixed(x(ratio.max))}" y1="${middle}" y2="${middle}" stroke="#999" stroke-width="2"/>`,
    `<text x="${fixed(x(ratio.max) + 8)}" y="${middle + 4}">${ratio.median.toFixed(2)} <tspan class="faint">${rates}</tspan></text>`,
  ].join('\n');
}

function rate({ tokensPerS }) {
  return tokensPerS >= 100 ? tokensPerS.toFixed(0) : tokensPerS.toFixed(1);
}

function fixed(value) {
  return value.toFixed(1);
}
