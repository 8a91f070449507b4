// Where libllama is: the directory of --backend-config=llama,library-path, else the prebuilt npm package for this machine,
// the CUDA or Vulkan one first where it is installed. Called by libllama.ts.

import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StatusError } from '../../../domain/status.ts';

/** The release of node-llama-cpp whose library the structures in structs.ts describe. */
export const LIBRARY_PACKAGE_VERSION = '3.22.1';

export interface LibraryFiles {
  readonly directory: string;
  readonly llama: string;
  readonly ggml: string;
  readonly ggmlBase: string;
}

export function findLibrary(configured: string | undefined): LibraryFiles {
  const directory = configured ?? packagedDirectory();
  if (directory === undefined) throw notInstalled();
  const files = existsSync(directory) ? readdirSync(directory) : [];
  const llama = pick(files, /^(lib)?llama(\.v?[\d.]+)?\.(so|dylib|dll)([\d.]*)$/);
  const ggml = pick(files, /^(lib)?ggml(\.v?[\d.]+)?\.(so|dylib|dll)([\d.]*)$/);
  const ggmlBase = pick(files, /^(lib)?ggml-base(\.v?[\d.]+)?\.(so|dylib|dll)([\d.]*)$/);
  if (llama === undefined || ggml === undefined || ggmlBase === undefined) {
    throw new StatusError(
      'UNAVAILABLE',
      `no libllama in ${directory}: it must hold libllama, libggml and libggml-base, as npm run build:libllama makes them`,
    );
  }
  return {
    directory,
    llama: join(directory, llama),
    ggml: join(directory, ggml),
    ggmlBase: join(directory, ggmlBase),
  };
}

/** The shortest name: libllama.so before libllama.so.0.5.0, which it links to. */
function pick(files: readonly string[], pattern: RegExp): string | undefined {
  return files.filter((name) => pattern.test(name)).sort((a, b) => a.length - b.length)[0];
}

/** Packages by preference; npm installs only what fits the machine. */
function packageNames(): readonly string[] {
  const system =
    { linux: 'linux', darwin: 'mac', win32: 'win' }[process.platform as string] ?? process.platform;
  const base = `${system}-${process.arch}`;
  return [`${base}-cuda`, `${base}-vulkan`, `${base}-metal`, base];
}

function packagedDirectory(): string | undefined {
  const resolve = createRequire(import.meta.url).resolve;
  for (const name of packageNames()) {
    try {
      const root = dirname(dirname(resolve(`@node-llama-cpp/${name}`)));
      return join(root, 'bins', name);
    } catch {
      // Not installed: the next one.
    }
  }
  return undefined;
}

function notInstalled(): StatusError {
  const name = packageNames().at(-1);
  return new StatusError(
    'UNAVAILABLE',
    `libllama is not installed; run npm install @node-llama-cpp/${name}@${LIBRARY_PACKAGE_VERSION}, or name a directory with ` +
      '--backend-config=llama,library-path=<directory>',
  );
}
