// Which file of a version directory is the model, and whether this Node can read it.

import { statSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { internal, type StatusError, unsupported } from '../../domain/status.ts';

/** In the order in which core/repository/complete-backend.ts looks; versions of one model may differ. */
const FILE_NAMES: readonly string[] = ['model.js', 'model.mjs', 'model.cjs', 'model.ts'];

/** Node that takes the types out of a file by itself, and Node that does so when told to. */
const STRIPS_FROM = '22.18';
const STRIPS_BY_FLAG_FROM = [22, 6] as const;

export function findModelFile(versionDirectory: string, configured: string): string {
  const isCustom = configured !== '' && !FILE_NAMES.includes(configured);
  const names = isCustom ? [configured] : [...new Set([configured, ...FILE_NAMES])].filter(Boolean);
  const name = names.find((candidate) => isFile(join(versionDirectory, candidate)));
  if (name === undefined) {
    const wanted = names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
    throw internal(`there is no ${wanted} in '${versionDirectory}'`);
  }
  const path = join(versionDirectory, name);
  const { typescript } = process.features as { typescript?: string | false };
  if (extname(name) === '.ts' && !typescript) throw cannotReadTypes(path);
  return path;
}

function cannotReadTypes(path: string): StatusError {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isFlagKnown =
    major > STRIPS_BY_FLAG_FROM[0] || (major === STRIPS_BY_FLAG_FROM[0] && minor >= STRIPS_BY_FLAG_FROM[1]);
  const flag = isFlagKnown ? ' or set NODE_OPTIONS=--experimental-strip-types,' : '';
  return unsupported(
    `Node.js ${process.versions.node} does not read TypeScript: run the server with Node.js ${STRIPS_FROM} or newer,${flag} or compile the model: ` +
      `cd ${dirname(path)} && npx -p typescript tsc --noCheck --target es2022 --module esnext --moduleResolution bundler ${basename(path)}`,
  );
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
