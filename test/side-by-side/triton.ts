// The real Triton as a program that play.ts can start, out of the bench's environment (bench/environment.mjs), which is
// installed on first use: some gigabytes.
import { pathToFileURL } from 'node:url';
import { inRoot } from '../support/paths.ts';
import type { ServerOptions } from '../support/server.ts';

/** What of bench/environment.mjs is used here. */
interface BenchEnvironment {
  preparePython(say: (text: string) => void): Promise<object>;
  prepareTriton(environment: object): {
    readonly binary: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
}

export async function findTriton(): Promise<Pick<ServerOptions, 'program' | 'env'>> {
  const file = pathToFileURL(inRoot('bench', 'environment.mjs')).href;
  const bench = (await import(file)) as BenchEnvironment;
  const triton = bench.prepareTriton(await bench.preparePython(console.error));
  return { program: { file: triton.binary, args: triton.args }, env: triton.env };
}
