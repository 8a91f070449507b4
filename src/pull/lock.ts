// One pull of a model at a time: a file with the id of the process that holds it. One that was left by a process that
// is no more counts for nothing. Called by pull.ts.

import { readFile, rm, writeFile } from 'node:fs/promises';
import { PullError } from './pull-error.ts';

/** Resolves with the function that lets go. */
export async function holdLock(path: string): Promise<() => Promise<void>> {
  for (let count = 0; count < 2; count++) {
    try {
      await writeFile(path, String(process.pid), { flag: 'wx' });
      return () => rm(path, { force: true });
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
      const owner = Number(await readFile(path, 'utf8').catch(() => ''));
      if (isAlive(owner)) throw new PullError(`process ${owner} is fetching this model already`);
      await rm(path, { force: true });
    }
  }
  throw new PullError(`${path} cannot be made`);
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}
