// Where things are, seen from a compiled test. Tests run from dist-test/, so nothing may be found
// relative to the running file: everything starts at the folder that holds package.json.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(from: string): string {
  let folder = from;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${from}`);
    folder = parent;
  }
  return folder;
}

export const ROOT = findRoot(dirname(fileURLToPath(import.meta.url)));

export function inRoot(...parts: string[]): string {
  return join(ROOT, ...parts);
}

/** The program that is tested; NEREID_DIST names another build than dist/, relative to the root. */
export const MAIN = process.env.NEREID_DIST
  ? inRoot(process.env.NEREID_DIST, 'main.js')
  : inRoot('bin', 'nereid.js');

/** The program of a host process, of the same build. */
export const HOST = inRoot(process.env.NEREID_DIST ?? 'dist', 'host.js');
