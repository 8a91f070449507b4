// The real Triton as a program that play.ts can start: its Python backend, from PyPI, in an environment of its own that the
// runner has made (requirements.txt). Where it cannot be had, the caller gets the reason.
import { execFile } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { inRoot } from '../support/paths.ts';
import type { ServerOptions } from '../support/server.ts';

const SHARED_MEMORY = '/dev/shm';

/** What of bench/environment.mjs is used here. */
interface BenchEnvironment {
  prepareTriton(environment: { python: string; site: string; lib: string; tag: string }): {
    readonly binary: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
}

export type Triton = Pick<ServerOptions, 'program' | 'env'>;

export async function findTriton(): Promise<Triton | { reason: string }> {
  const python = process.env.NEREID_TRITON_PYTHON;
  if (python === undefined) {
    const reason = process.env.NEREID_TRITON_PYTHON_REASON ?? 'run through `npm test`';
    return { reason: `the real Triton is not to be had: ${reason}` };
  }
  const script =
    'import sys, sysconfig as s; print(s.get_path("purelib"), s.get_config_var("LIBDIR"), "%d.%d" % sys.version_info[:2])';
  const { stdout } = await promisify(execFile)(python, ['-c', script]);
  const [site, lib, tag] = stdout.trim().split(' ') as [string, string, string];
  try {
    const file = pathToFileURL(inRoot('bench', 'environment.mjs')).href;
    const { prepareTriton } = (await import(file)) as BenchEnvironment;
    const { binary, args, env } = prepareTriton({ python, site, lib, tag });
    const prefix = `--backend-config=python,shm-region-prefix-name=${regionPrefix()}`;
    return { program: { file: binary, args: [...args, prefix] }, env };
  } catch (error) {
    return { reason: (error as Error).message };
  }
}

/** A Triton that is killed leaves its shared memory behind. */
export function removeRegions(): void {
  const names = readdirSync(SHARED_MEMORY).filter((name) => name.startsWith(regionPrefix()));
  for (const name of names) rmSync(join(SHARED_MEMORY, name), { force: true });
}

function regionPrefix(): string {
  return `nereid_side_${process.pid}_`;
}
