// NVIDIA's perf_analyzer for tests: found or installed the way the bench does it (bench/environment.mjs), and run once
// with given arguments. Without it the tests are skipped with the reason found here.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { inRoot } from './paths.ts';
import { pythonSkip } from './python.ts';

const RUN_MS_MAX = 30_000;

export interface PerfAnalyzer {
  readonly file: string;
  /** The folder with the libraries that it wants. */
  readonly libraries: string;
}

interface BenchEnvironment {
  readonly LAST_PERF_ANALYZER: string;
  perfAnalyzerHome(release: string): string;
  preparePython(say: (text: string) => void): Promise<unknown>;
  preparePerfAnalyzer(
    environment: unknown,
    say: (text: string) => void,
    release: string,
  ): Promise<PerfAnalyzer>;
}

/** Installs it when it is not there: some minutes, once for a machine. */
export async function findPerfAnalyzer(): Promise<PerfAnalyzer | { readonly reason: string }> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return { reason: 'perf_analyzer exists for Linux on x64 only' };
  }
  const bench = (await import(
    pathToFileURL(inRoot('bench', 'environment.mjs')).href
  )) as unknown as BenchEnvironment;
  const release = bench.LAST_PERF_ANALYZER;
  try {
    const isThere = process.env.NEREID_BENCH_PERF_ANALYZER || existsSync(bench.perfAnalyzerHome(release));
    if (!isThere && pythonSkip) return { reason: `perf_analyzer cannot be installed: ${pythonSkip}` };
    const environment = isThere ? undefined : await bench.preparePython(console.log);
    return await bench.preparePerfAnalyzer(environment, console.log, release);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { reason: `perf_analyzer cannot be installed: ${text.slice(0, 300)}` };
  }
}

export interface PerfRun {
  readonly code: number | null;
  readonly output: string;
  /** Requests counted and inferences per second, of its last report; 0 without one. */
  readonly requestCount: number;
  readonly inferPerS: number;
}

export function runPerfAnalyzer(perfAnalyzer: PerfAnalyzer, args: readonly string[]): Promise<PerfRun> {
  const path = [perfAnalyzer.libraries, process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
  return new Promise((resolve, reject) => {
    const child = spawn(perfAnalyzer.file, args, {
      env: { ...process.env, LD_LIBRARY_PATH: path },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: RUN_MS_MAX,
      killSignal: 'SIGKILL',
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    child.once('error', reject);
    child.once('close', (code) => {
      const read = (pattern: RegExp) => Number([...output.matchAll(pattern)].at(-1)?.[1] ?? 0);
      resolve({
        code,
        output,
        requestCount: read(/^ +Request count: (\d+)/gm),
        inferPerS: read(/^ +Throughput: ([\d.]+) infer\/sec/gm),
      });
    });
  });
}
