// Draws one run as a small SVG: a bar per point, as long as Nereid's throughput over Triton's, with the spread of the
// rounds as a whisker and a line where the two are equal. Pure.

const WIDTH = 760;
const LEFT = 250;
const RIGHT = 170;
const TOP = 46;
const BAR = 18;
const STEP = 30;
const STYLE = [
  'text { font: 12px system-ui, sans-serif; fill: #333 }',
  '.title { font-size: 14px; font-weight: 600 }',
  '.faint { fill: #777 }',
  '@media (prefers-color-scheme: dark) { text { fill: #ddd } .faint { fill: #999 } }',
].join(' ');

export function drawChart({ date, commit, points }) {
  const compared = points.filter((point) => point.ratio !== undefined);
  const longest = Math.max(1.5, ...compared.map((point) => point.ratio.max));
  const x = (ratio) => LEFT + (ratio / longest) * (WIDTH - LEFT - RIGHT);
  const height = TOP + compared.length * STEP + 26;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Throughput of Nereid relative to Triton">`,
    `<style>${STYLE}</style>`,
    `<text class="title" x="12" y="22">Throughput, Nereid ÷ Triton (Python backend): longer is better</text>`,
    ...compared.map((point, i) => drawBar({ point, y: TOP + i * STEP, x })),
    `<line x1="${fixed(x(1))}" x2="${fixed(x(1))}" y1="${TOP - 8}" y2="${height - 24}" stroke="#888" stroke-dasharray="3 3"/>`,
    `<text class="faint" x="${fixed(x(1))}" y="${height - 8}" text-anchor="middle">equal</text>`,
    `<text class="faint" x="12" y="${height - 8}">${date.slice(0, 10)} ${commit}</text>`,
    '</svg>',
    '',
  ].join('\n');
}

function drawBar({ point, y, x }) {
  const { model, transport = 'http', concurrency, ratio, nereid, triton } = point;
  const middle = y + BAR / 2;
  const color = ratio.median >= 1 ? '#1f8a70' : '#c8553d';
  const rates = `${rate(nereid)} : ${rate(triton)} infer/s`;
  return [
    `<text x="${LEFT - 10}" y="${middle + 4}" text-anchor="end">${model}, ${transport}, ${concurrency} in flight</text>`,
    `<rect x="${LEFT}" y="${y}" width="${fixed(x(ratio.median) - LEFT)}" height="${BAR}" rx="2" fill="${color}"/>`,
    `<line x1="${fixed(x(ratio.min))}" x2="${fixed(x(ratio.max))}" y1="${middle}" y2="${middle}" stroke="#999" stroke-width="2"/>`,
    `<text x="${fixed(x(ratio.max) + 8)}" y="${middle + 4}">${ratio.median.toFixed(2)}x <tspan class="faint">${rates}</tspan></text>`,
  ].join('\n');
}

function rate({ inferPerS }) {
  return inferPerS >= 100 ? inferPerS.toFixed(0) : inferPerS.toFixed(1);
}

function fixed(value) {
  return value.toFixed(1);
}
