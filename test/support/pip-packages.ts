// Python packages that one test needs and the others do not, such as one that brings its networks along. They are
// fetched once into the user's cache, beside the environment of the tests; where they cannot be had, the caller gets pip's
// reason and skips.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const INSTALL_MS_MAX = 150_000;

/** The folder to name in PYTHONPATH. `packages` are installed without what they depend on: the list says it all. */
export async function findPackages(
  name: string,
  packages: readonly string[],
): Promise<{ folder: string } | { reason: string }> {
  const python = process.env.NEREID_TEST_PYTHON ?? 'python3';
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  // Compiled packages belong to one version of Python, which the path of the environment stands for.
  const key = createHash('sha256')
    .update([python, ...packages].join('\n'))
    .digest('hex')
    .slice(0, 16);
  const folder = join(cache, 'nereid', `${name}-${key}`);
  if (existsSync(folder)) return { folder };
  // Filled beside its place and renamed, so that nobody sees half of it.
  const draft = `${folder}.${process.pid}`;
  const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1'];
  try {
    await mkdir(dirname(folder), { recursive: true });
    await promisify(execFile)(
      python,
      [...args, '--timeout', '15', '--no-deps', '--target', draft, ...packages],
      { timeout: INSTALL_MS_MAX },
    );
    await rename(draft, folder);
    return { folder };
  } catch (thrown) {
    if (existsSync(folder)) return { folder };
    const { stderr, message } = thrown as { stderr?: string; message: string };
    const reason = (stderr || message).trim().split('\n').at(-1) ?? '';
    return { reason: `${name} could not be installed: ${reason.slice(0, 300)}` };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
