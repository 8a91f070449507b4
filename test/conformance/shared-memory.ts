// POSIX shared memory objects of the cases, as files below /dev/shm: made before a case, read by its steps, removed
// after it. The server opens the same objects by their keys.
import { existsSync } from 'node:fs';
import { open, rm, writeFile } from 'node:fs/promises';
import type { CaseRequest, CaseSharedMemory } from './cases.ts';
import type { JsonObject } from './json.ts';

const FOLDER = '/dev/shm';

/** Pass as node:test's `skip` option for cases with shared memory. */
export const sharedMemorySkip: string | false = existsSync(FOLDER) ? false : `this machine has no ${FOLDER}`;

export async function makeSharedMemory(objects: readonly CaseSharedMemory[]): Promise<void> {
  for (const { key, size, data_b64 = '' } of objects) {
    const data = Buffer.alloc(size);
    Buffer.from(data_b64, 'base64').copy(data);
    await writeFile(pathOf(key), data);
  }
}

export async function removeSharedMemory(objects: readonly CaseSharedMemory[]): Promise<void> {
  for (const { key } of objects) await rm(pathOf(key), { force: true });
}

export async function readSharedMemory({
  key,
  offset = 0,
  size,
}: NonNullable<CaseRequest['shm_read']>): Promise<JsonObject> {
  const file = await open(pathOf(key));
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, offset);
    return { bytes_b64: buffer.toString('base64', 0, bytesRead) };
  } finally {
    await file.close();
  }
}

function pathOf(key: string): string {
  return `${FOLDER}/${key.replace(/^\/+/, '')}`;
}
