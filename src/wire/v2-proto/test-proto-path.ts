// Where the .proto files are, for tests that compare with another implementation of protobuf. Used by tests alone:
// the server reads no .proto file.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** From the folder that holds package.json, since tests run compiled. */
export function protoPath(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return join(folder, 'proto', name);
}
