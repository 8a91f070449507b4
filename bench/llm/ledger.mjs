// The ledger of the LLM bench: one JSON line per run in ledger.jsonl, and LEDGER.md and ledger.svg, drawn anew from all
// lines each time. Old lines are never changed.
import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeMachine, formatNumber, formatRatio, isPictured, readCommit } from '../ledger.mjs';
import { drawChart } from './chart.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const LEDGER = join(HERE, 'ledger.jsonl');

export function describeRun({ options, library, modelFile, points }) {
  return {
    date: new Date().toISOString(),
    commit: readCommit(),
    machine: { ...describeMachine(), ...(options.gpuLayers > 0 ? { gpu: readGpuName() } : {}) },
    library: library.kind,
    model: basename(modelFile),
    threads: options.threads,
    gpuLayers: options.gpuLayers,
    rounds: options.rounds,
    windowMs: options.windowMs,
    points,
  };
}

function readGpuName() {
  try {
    return execFileSync('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader'], {
      encoding: 'utf8',
    }).trim();
  } catch {
    return 'unknown';
  }
}

export function writeLedger(row) {
  appendFileSync(LEDGER, `${JSON.stringify(row)}\n`);
  const rows = readFileSync(LEDGER, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  writeFileSync(join(HERE, 'LEDGER.md'), renderLedger(rows));
  if (isPictured(rows, pictureOf)) writeFileSync(join(HERE, pictureOf(row)), drawChart(row));
}

/** The newest whole run on each kind of machine has a picture. */
function pictureOf({ gpuLayers }) {
  return gpuLayers > 0 ? 'ledger-gpu.svg' : 'ledger.svg';
}

export function renderLedger(rows) {
  const opening = [
    '# Ledger of the LLM bench',
    '',
    'Measured by `npm run bench:llm`; [README.md](README.md) says how. Newest first. This page and the pictures are',
    'drawn from `ledger.jsonl`; do not edit them.',
    '',
    ...[...new Set(rows.map(pictureOf))].flatMap((picture) => [`![The newest whole run](${picture})`, '']),
  ];
  return [...opening, ...[...rows].reverse().flatMap(renderRow)].join('\n');
}

function renderRow({ date, commit, machine, library, model, threads, gpuLayers, rounds, windowMs, points }) {
  const device = gpuLayers > 0 ? `${machine.gpu}, ` : '';
  return [
    `## ${date.slice(0, 16).replace('T', ' ')} UTC · ${library} · ${commit}`,
    '',
    `${device}${machine.coreCount} cores, ${machine.cpu}, ${machine.memoryGib} GiB, ${machine.os}, Node ${machine.node}; ` +
      `${model}, ${threads} thread${threads === 1 ? '' : 's'}; ` +
      `medians of ${rounds} round${rounds === 1 ? '' : 's'}, windows of ${windowMs / 1000} s.`,
    '',
    ...renderTable(points),
    ...renderReuse(points),
    '',
  ];
}

/** What the shared prefix is worth, where a run has both: the same prompts' length with and without something to reuse. */
export function renderReuse(points) {
  const lines = points.flatMap(({ scenario, concurrency, systems }) => {
    const other = points.find((point) => point.scenario === 'unique' && point.concurrency === concurrency);
    if (scenario !== 'shared' || other === undefined) return [];
    const ratios = Object.entries(systems).flatMap(([name, { tokensPerS }]) =>
      other.systems[name] === undefined
        ? []
        : [`${name} ${(tokensPerS / other.systems[name].tokensPerS).toFixed(1)}x`],
    );
    return [`Throughput of shared over unique at ${concurrency}: ${ratios.join(', ')}.`];
  });
  return lines.length === 0 ? [] : ['', ...lines];
}

const COLUMNS = [
  { title: 'prompts', isText: true, cell: ({ point }) => point.scenario },
  { title: 'streams', cell: ({ point }) => String(point.concurrency) },
  { title: 'system', isText: true, cell: ({ name }) => name },
  { title: 'tok/s', cell: ({ system }) => formatNumber(system.tokensPerS) },
  { title: 'TTFT p50 ms', cell: ({ system }) => formatNumber(system.ttftP50Ms) },
  { title: 'TTFT p99 ms', cell: ({ system }) => formatNumber(system.ttftP99Ms) },
  { title: 'between p50 ms', cell: ({ system }) => formatNumber(system.gapP50Ms) },
  { title: 'between p99 ms', cell: ({ system }) => formatNumber(system.gapP99Ms) },
  { title: 'of libllama (spread)', cell: ({ system }) => formatShare(system.ofLimit) },
  { title: 'of llama-server (spread)', cell: ({ system }) => formatShare(system.ofServer) },
];

/** Markdown that also reads well in a terminal. */
export function renderTable(points) {
  const lines = points.flatMap((point) =>
    Object.entries(point.systems).map(([name, system]) =>
      COLUMNS.map((column) => column.cell({ point, name, system })),
    ),
  );
  const widths = COLUMNS.map(({ title }, i) =>
    Math.max(title.length, ...lines.map((cells) => cells[i].length)),
  );
  const pad = (cell, i) => (COLUMNS[i].isText ? cell.padEnd(widths[i]) : cell.padStart(widths[i]));
  const join = (cells) => `| ${cells.map(pad).join(' | ')} |`;
  const rule = widths.map((width, i) =>
    COLUMNS[i].isText ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`,
  );
  return [join(COLUMNS.map(({ title }) => title)), `|${rule.join('|')}|`, ...lines.map(join)];
}

function formatShare(ratio) {
  return ratio === undefined ? '' : formatRatio(ratio);
}
