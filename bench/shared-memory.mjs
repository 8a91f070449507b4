// Why shared memory is read with pread and not through a mapping: the two ways to get a client's tensor into a
// Buffer of ours, and back, measured side by side on one object in the system's folder.
//   node bench/shared-memory.mjs
// Five rounds; the order of the ways turns every round; the table shows medians per copy.
import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import koffi from 'koffi';

const ROUNDS = 5;
const ROUND_MS = 150;
const SIZES = [4 * 1024, 64 * 1024, 600 * 1024, 8 * 1024 * 1024];
const PATH = `/dev/shm/nereid-bench-${process.pid}`;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;

const libc = koffi.load(null);
const mmap = libc.func(
  'void *mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset)',
);
const munmap = libc.func('int munmap(void *address, size_t length)');

/** Every way copies `size` bytes once per call; a server makes a new buffer for each input. */
function waysOf(fd, size) {
  const address = mmap(null, size, PROT_READ_WRITE, MAP_SHARED, fd, 0);
  const view = Buffer.from(koffi.view(address, size));
  const output = Buffer.alloc(size, 7);
  return {
    close: () => munmap(address, size),
    ways: {
      'pread, new buffer': () => {
        const buffer = Buffer.allocUnsafe(size);
        if (readSync(fd, buffer, 0, size, 0) !== size) throw new Error('short read');
      },
      'view, new buffer': () => {
        const buffer = Buffer.allocUnsafe(size);
        view.copy(buffer);
      },
      pwrite: () => {
        if (writeSync(fd, output, 0, size, 0) !== size) throw new Error('short write');
      },
      'to the view': () => {
        output.copy(view);
      },
      'map, view, copy, unmap': () => {
        const once = mmap(null, size, PROT_READ_WRITE, MAP_SHARED, fd, 0);
        const buffer = Buffer.allocUnsafe(size);
        Buffer.from(koffi.view(once, size)).copy(buffer);
        munmap(once, size);
      },
    },
  };
}

/** Microseconds per call, over about ROUND_MS. */
function measure(way) {
  for (let i = 0; i < 5; i++) way();
  let calls = 0;
  const startMs = performance.now();
  let nowMs = startMs;
  while (nowMs - startMs < ROUND_MS) {
    for (let i = 0; i < 8; i++) way();
    calls += 8;
    nowMs = performance.now();
  }
  return ((nowMs - startMs) * 1000) / calls;
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}

function sizeText(size) {
  return size >= 1024 * 1024 ? `${size / 1024 / 1024} MiB` : `${size / 1024} KiB`;
}

const rows = [];
for (const size of SIZES) {
  writeFileSync(PATH, Buffer.alloc(size, 1));
  const fd = openSync(PATH, 'r+');
  const { ways, close } = waysOf(fd, size);
  try {
    const names = Object.keys(ways);
    const found = new Map(names.map((name) => [name, []]));
    for (let round = 0; round < ROUNDS; round++) {
      const order = round % 2 === 0 ? names : [...names].reverse();
      for (const name of order) found.get(name).push(measure(ways[name]));
    }
    rows.push([sizeText(size), ...names.map((name) => `${median(found.get(name)).toFixed(1)} µs`)]);
    if (rows.length === 1) rows.unshift(['size', ...names]);
  } finally {
    close();
    closeSync(fd);
    rmSync(PATH, { force: true });
  }
}

const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
for (const [index, row] of rows.entries()) {
  console.log(`| ${row.map((cell, column) => cell.padStart(widths[column])).join(' | ')} |`);
  if (index === 0) console.log(`|${widths.map((width) => `${'-'.repeat(width + 1)}:`).join('|')}|`);
}
