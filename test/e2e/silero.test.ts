// A real recurrent network as a sequence model with implicit state: 32 audio streams at once through the Silero voice
// activity detector, each answer compared with the network run alone. The package and onnxruntime for Python are
// fetched once into the user's cache; where they cannot be had the test is skipped with pip's reason.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { pythonSkip, runPython } from '../support/python.ts';
import { createRepository } from '../support/repository.ts';
import { startServer } from '../support/server.ts';

const VERSION = '6.2.3';
/** Without their dependencies: silero-vad wants torch, of which nothing is used here. */
const PACKAGES = [`silero-vad==${VERSION}`, 'onnxruntime', 'flatbuffers', 'packaging'];
const INSTALL_MS_MAX = 120_000;

/** The folder that holds the packages, or why there is none. */
async function findPackages(): Promise<{ folder: string } | { reason: string }> {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const folder = join(cache, 'nereid', `silero-vad-${VERSION}`);
  if (existsSync(folder)) return { folder };
  // Filled beside its place and renamed, so that nobody sees half of it.
  const draft = `${folder}.${process.pid}`;
  const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1'];
  try {
    await mkdir(dirname(folder), { recursive: true });
    await promisify(execFile)(
      process.env.NEREID_TEST_PYTHON ?? 'python3',
      [...args, '--timeout', '15', '--no-deps', '--target', draft, ...PACKAGES],
      { timeout: INSTALL_MS_MAX },
    );
    await rename(draft, folder);
    return { folder };
  } catch (thrown) {
    if (existsSync(folder)) return { folder };
    const { stderr, message } = thrown as { stderr?: string; message: string };
    const reason = (stderr || message).trim().split('\n').at(-1) ?? '';
    return { reason: `silero-vad could not be installed: ${reason.slice(0, 300)}` };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

test('32 streams of audio through Silero VAD are what the network alone answers', {
  skip: pythonSkip,
}, async (t) => {
  const packages = await findPackages();
  if ('reason' in packages) {
    t.skip(packages.reason);
    return;
  }
  const env = { PYTHONPATH: packages.folder };
  const file = join(packages.folder, 'silero_vad', 'data', 'silero_vad.onnx');
  const repository = createRepository();
  try {
    const prepared = await runPython({
      script: 'e2e/silero.py',
      args: ['prepare', repository.path, file],
      env,
    });
    assert.equal(prepared.code, 0, prepared.output);
    const server = await startServer({ repository: repository.path, isGrpc: true });
    try {
      const checked = await runPython({
        script: 'e2e/silero.py',
        args: ['check', server.grpcAddress, file],
        env,
      });
      assert.equal(checked.code, 0, `${checked.output}\n--- server log\n${server.logs()}`);
      assert.match(checked.output, /all equal/);
      t.diagnostic(checked.output.trim());
    } finally {
      await server.stop();
    }
  } finally {
    repository.remove();
  }
});
