// Gauges of the machine: processor, memory, and the pinned pool, which this server does not have and reports
// as Triton does on a machine without CUDA: its size, unused. Refreshed at a scrape, at most once per interval.

import { readFileSync } from 'node:fs';
import os from 'node:os';
import type { Clock } from '../../lib/clock.ts';
import type { MetricsRegistry } from './metrics-registry.ts';

export interface SystemMetricsOptions {
  readonly registry: MetricsRegistry;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly isCpuMetrics: boolean;
  readonly pinnedPoolBytes: number;
}

export interface CpuTimes {
  readonly idle: number;
  readonly total: number;
}

/** Registers the gauges; the answer removes them. */
export function addSystemMetrics(options: SystemMetricsOptions): () => void {
  const { registry } = options;
  const pinnedTotal = registry.gauge(
    'nv_pinned_memory_pool_total_bytes',
    'Pinned memory pool total memory size, in bytes',
  );
  const pinnedUsed = registry.gauge(
    'nv_pinned_memory_pool_used_bytes',
    'Pinned memory pool used memory size, in bytes',
  );
  pinnedTotal.series.set(options.pinnedPoolBytes);
  const removeCpu = options.isCpuMetrics ? addCpuMetrics(options) : undefined;
  return () => {
    pinnedTotal.release();
    pinnedUsed.release();
    removeCpu?.();
  };
}

function addCpuMetrics({ registry, clock, intervalMs }: SystemMetricsOptions): () => void {
  const utilization = registry.gauge('nv_cpu_utilization', 'CPU utilization rate [0.0 - 1.0]');
  const memoryTotal = registry.gauge('nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes');
  const memoryUsed = registry.gauge('nv_cpu_memory_used_bytes', 'CPU used memory (RAM), in bytes');
  let times = readCpuTimes();
  let refreshedMs = Number.NEGATIVE_INFINITY;

  const removeCollector = registry.addCollector(() => {
    const nowMs = clock.nowMs();
    if (nowMs - refreshedMs < intervalMs) return;
    refreshedMs = nowMs;
    const latest = readCpuTimes();
    // the kernel counts in hundredths of a second: two scrapes in one tick say nothing new
    if (latest.total > times.total) {
      utilization.series.set(utilizationBetween(times, latest));
      times = latest;
    }
    const memory = readMemory();
    memoryTotal.series.set(memory.totalBytes);
    memoryUsed.series.set(memory.usedBytes);
  });
  return () => {
    removeCollector();
    utilization.release();
    memoryTotal.release();
    memoryUsed.release();
  };
}

export function utilizationBetween(earlier: CpuTimes, later: CpuTimes): number {
  const total = later.total - earlier.total;
  if (total <= 0) return 0;
  const busy = total - (later.idle - earlier.idle);
  return Math.min(1, Math.max(0, busy / total));
}

/** `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; idle and iowait are idle. */
export function parseProcStat(text: string): CpuTimes | undefined {
  const line = /^cpu\s+(.*)$/m.exec(text)?.[1];
  if (line === undefined) return undefined;
  // guest times are already part of user and nice
  const fields = line.trim().split(/\s+/).slice(0, 8).map(Number);
  if (fields.length < 4 || fields.some(Number.isNaN)) return undefined;
  let total = 0;
  for (const field of fields) total += field;
  return { idle: fields[3]! + (fields[4] ?? 0), total };
}

/** Bytes; used is what is not available, so page cache does not count. */
export function parseMemInfo(text: string): { totalBytes: number; usedBytes: number } | undefined {
  const total = /^MemTotal:\s+(\d+) kB$/m.exec(text)?.[1];
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1];
  if (total === undefined || available === undefined) return undefined;
  const totalBytes = Number(total) * 1024;
  return { totalBytes, usedBytes: totalBytes - Number(available) * 1024 };
}

function readCpuTimes(): CpuTimes {
  const text = readProc('/proc/stat');
  return (text === undefined ? undefined : parseProcStat(text)) ?? cpuTimesOfOs();
}

function cpuTimesOfOs(): CpuTimes {
  let idle = 0;
  let total = 0;
  for (const { times } of os.cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, total };
}

function readMemory(): { totalBytes: number; usedBytes: number } {
  const text = readProc('/proc/meminfo');
  const memory = text === undefined ? undefined : parseMemInfo(text);
  return memory ?? { totalBytes: os.totalmem(), usedBytes: os.totalmem() - os.freemem() };
}

/** Synchronous on purpose: the kernel makes these few hundred bytes from memory, no disk is involved. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // not Linux, or /proc is hidden: the caller asks the os module instead
    return undefined;
  }
}
