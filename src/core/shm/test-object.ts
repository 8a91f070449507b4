// Shared-memory objects for the tests beside it: real files in the system's folder, removed by the caller.

import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';

const FOLDER = '/dev/shm';

/** Pass as node:test's `skip` option. */
export const shmSkip: string | false = existsSync(FOLDER) ? false : `this platform has no ${FOLDER}`;

let count = 0;

export interface TestObject {
  readonly key: string;
  readonly path: string;
  bytes(): Buffer;
  truncate(byteLength: number): void;
  remove(): void;
}

export function createObject(data: Uint8Array): TestObject {
  count += 1;
  const name = `nereid-test-${process.pid}-${count}`;
  const path = `${FOLDER}/${name}`;
  writeFileSync(path, data);
  return {
    key: `/${name}`,
    path,
    bytes: () => readFileSync(path),
    truncate: (byteLength) => truncateSync(path, byteLength),
    remove: () => rmSync(path, { force: true }),
  };
}
