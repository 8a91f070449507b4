// The ledger: one JSON line per run in ledger.jsonl, and what people read, LEDGER.md and ledger.svg, drawn anew from
// all lines each time. Old lines are never changed.
import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drawChart } from './chart.mjs';
import { ROOT, readOnnxRuntimeVersion } from './environment.mjs';

const BENCH = dirname(fileURLToPath(import.meta.url));
const LEDGER = join(BENCH, 'ledger.jsonl');
const GIB = 1024 ** 3;

export function describeRun({ options, environment, points }) {
  return {
    date: new Date().toISOString(),
    commit: readCommit(),
    machine: describeMachine(),
    versions: {
      onnxruntimeNereid: readOnnxRuntimeVersion(),
      onnxruntimeTriton: environment.onnxruntime,
      python: environment.tag,
      triton: environment.tritonVersion,
    },
    set: options.set,
    rounds: options.rounds,
    client: options.client,
    points,
  };
}

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    coreCount: availableParallelism(),
    memoryGib: Math.round(totalmem() / GIB),
    os: `${type()} ${release().split('-')[0]}`,
    node: process.version,
  };
}

/** A plus sign says that the tree held changes that no commit has. */
export function readCommit() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain') === '' ? '' : '+');
  } catch {
    // An unpacked archive has no history.
    return 'unknown';
  }
}

export function writeLedger(row) {
  appendFileSync(LEDGER, `${JSON.stringify(row)}\n`);
  const rows = readFileSync(LEDGER, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  writeFileSync(join(BENCH, 'LEDGER.md'), renderLedger(rows));
  if (isPictured(rows, pictureOf)) writeFileSync(join(BENCH, pictureOf(row)), drawChart(row));
}

/** Runs before it that tell what a whole one is. */
const RUNS_LOOKED_AT = 3;

/** The newest run; not when it is a closer look at a few points. */
export function isPictured(rows, pictureOf) {
  const row = rows.at(-1);
  const before = rows.slice(0, -1).filter((other) => pictureOf(other) === pictureOf(row));
  const most = Math.max(0, ...before.slice(-RUNS_LOOKED_AT).map(({ points }) => points.length));
  return row.points.length >= most / 2;
}

/** The newest whole run of each set has a picture. */
function pictureOf({ set = 'onnx' }) {
  return set === 'onnx' ? 'ledger.svg' : `ledger-${set}.svg`;
}

export function renderLedger(rows) {
  const opening = [
    '# Ledger',
    '',
    'Nereid beside the real Triton, measured by `npm run bench`; [README.md](README.md) says how. Newest first.',
    'This page and the pictures are drawn from `ledger.jsonl`; do not edit them.',
    '',
    ...[...new Set(rows.map(pictureOf))].flatMap((picture) => [`![The newest whole run](${picture})`, '']),
  ];
  return [...opening, ...[...rows].reverse().flatMap(renderRow)].join('\n');
}

function renderRow({ date, commit, machine, versions, set = 'onnx', rounds, client, points }) {
  return [
    `## ${date.slice(0, 16).replace('T', ' ')} UTC · ${set} · ${commit}`,
    '',
    `${machine.coreCount} cores, ${machine.cpu}, ${machine.memoryGib} GiB, ${machine.os}, Node ${machine.node}; ` +
      `Triton ${versions.triton}, Python ${versions.python}, ` +
      `ONNX Runtime ${versions.onnxruntimeNereid} (Nereid) and ${versions.onnxruntimeTriton} (Triton); ` +
      `medians of ${rounds} round${rounds === 1 ? '' : 's'}, client ${client}.`,
    '',
    ...renderTable(points),
    '',
  ];
}

/** Markdown that also reads well in a terminal. */
export function renderTable(points) {
  const header = [
    'model',
    'transport',
    'concurrency',
    'server',
    'infer/s',
    'p50 ms',
    'p95 ms',
    'p99 ms',
    'ratio (spread)',
  ];
  const lines = points.flatMap((point) =>
    ['nereid', 'triton'].flatMap((server) =>
      point[server] === undefined ? [] : [renderLine({ point, server, ratio: point.ratio })],
    ),
  );
  const widths = header.map((title, i) => Math.max(title.length, ...lines.map((cells) => cells[i].length)));
  const isText = (i) => i < 2 || i === 3;
  const join = (cells) =>
    `| ${cells.map((cell, i) => (isText(i) ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => (isText(i) ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [join(header), rule, ...lines.map(join)];
}

function renderLine({ point, server, ratio }) {
  const { inferPerS, p50Us, p95Us, p99Us, unstableCount } = point[server];
  const spread = ratio === undefined || server !== 'nereid' ? '' : formatRatio(ratio);
  // A star marks points whose windows never agreed; their median is less sure.
  const mark = unstableCount > 0 ? '*' : '';
  const latencies = [p50Us, p95Us, p99Us].map((us) => formatNumber(us / 1000));
  return [
    point.model,
    // Runs before there was gRPC have no such field.
    point.transport ?? 'http',
    String(point.concurrency),
    server,
    formatNumber(inferPerS) + mark,
    ...latencies,
    spread,
  ];
}

export function formatRatio({ median, min, max }) {
  return `${median.toFixed(2)}x (${min.toFixed(2)}–${max.toFixed(2)})`;
}

export function formatNumber(value) {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
