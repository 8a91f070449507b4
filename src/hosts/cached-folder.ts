// Folders that are costly to make and are kept in the user's cache: unpacked and installed Python environments.
//
//   <cache>/nereid/python/<key>.ready          names the folder below; written last
//   <cache>/nereid/python/<key>-<pid>-<n>/     made by that process
//
// A folder is never moved, because environments hold their own path. Two processes that make the same one at a time
// do so side by side, and the later name stays.

import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The instances and models of this process that want the same folder wait for the one that makes it. */
const underWay = new Map<string, Promise<string>>();
let madeCount = 0;

/** `make` fills an empty folder that exists. When it throws nothing is kept, and the next call tries again. */
export function cachedFolder(key: string, make: (folder: string) => Promise<void>): Promise<string> {
  const started = underWay.get(key);
  if (started !== undefined) return started;
  const folder = findOrMake(key, make).finally(() => underWay.delete(key));
  underWay.set(key, folder);
  return folder;
}

async function findOrMake(key: string, make: (folder: string) => Promise<void>): Promise<string> {
  const root = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'nereid', 'python');
  const pointer = join(root, `${key}.ready`);
  const known = await readFile(pointer, 'utf8').catch(() => '');
  if (known !== '' && (await isDirectory(join(root, known)))) return join(root, known);
  const name = `${key}-${process.pid}-${++madeCount}`;
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  try {
    await make(folder);
  } catch (thrown) {
    await rm(folder, { recursive: true, force: true });
    throw thrown;
  }
  await writeFile(`${folder}.ready`, name);
  await rename(`${folder}.ready`, pointer);
  return folder;
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
