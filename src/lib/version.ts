// The version of this package, read from its package.json at run time, so that it is written in one place
// only. Read once at start-up, hence synchronously.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Looks upwards from the compiled file, whose depth depends on where it was built to. */
export function readVersion(): string {
  let directory = path.dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const version = versionIn(path.join(directory, 'package.json'));
    if (version !== undefined) return version;
    const parent = path.dirname(directory);
    if (parent === directory) return 'unknown';
    directory = parent;
  }
}

function versionIn(file: string): string | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // no package.json here: it lies further up
    return undefined;
  }
  const content: unknown = JSON.parse(text);
  if (typeof content !== 'object' || content === null) return undefined;
  const { name, version } = content as { name?: unknown; version?: unknown };
  return name === 'nereid' && typeof version === 'string' ? version : undefined;
}
