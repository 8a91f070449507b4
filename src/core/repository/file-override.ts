// A model loaded from files that came with the load call: they are written to a directory of their own, and no
// path may leave it.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, normalize, sep } from 'node:path';
import { invalidArgument } from '../../domain/status.ts';
import type { ModelDirectory } from './scan.ts';

export interface FileOverride {
  /** Relative to the model's directory, with forward slashes. */
  readonly path: string;
  readonly content: Buffer;
}

export interface OverrideDirectory extends ModelDirectory {
  remove(): Promise<void>;
}

export async function writeOverride(
  name: string,
  files: readonly FileOverride[],
): Promise<OverrideDirectory> {
  for (const file of files) checkInside(file.path);
  const root = await mkdtemp(join(tmpdir(), 'nereid-model-'));
  const path = join(root, name);
  const remove = () => rm(root, { recursive: true, force: true });
  try {
    await mkdir(path);
    for (const file of files) {
      const target = join(path, file.path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, file.content);
    }
  } catch (thrown) {
    await remove();
    throw thrown;
  }
  return { name, path, remove };
}

function checkInside(path: string): void {
  const clean = normalize(path);
  const isOutside =
    path === '' ||
    path.includes('\0') ||
    path.includes('\\') ||
    isAbsolute(path) ||
    clean === '..' ||
    clean.startsWith(`..${sep}`) ||
    clean === '.' ||
    clean.endsWith(sep);
  if (isOutside) {
    throw invalidArgument(`file override '${path}' must name a file inside the model directory`);
  }
}
