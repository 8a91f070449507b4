// The model as the server wants it: version directory and config.pbtxt, made beside the repository's models and brought
// in by a rename, so that a server that polls never sees half of one. Called by pull.ts when every file is there.

import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelFormat } from './choose-files.ts';
import { PullError } from './pull-error.ts';

export interface PulledFile {
  /** Where the bytes are now. */
  readonly path: string;
  /** Its name in the version directory. */
  readonly target: string;
  /** Its name at the source. */
  readonly origin: string;
  readonly byteLength: number;
  readonly sha256: string;
}

export interface Provenance {
  /** A URL without a token. */
  readonly url: string;
  /** What was asked for and what that was; undefined for a plain URL. */
  readonly revision: { readonly name: string; readonly commit: string } | undefined;
}

const BACKENDS: Readonly<Record<ModelFormat, string>> = { gguf: 'llama', onnx: 'onnxruntime' };
const VERSION = '1';
const CONFIG = 'config.pbtxt';
export const KEPT_CONFIG = 'config.pbtxt.before-pull';

/** The first file is the one that the backend opens. */
export function configText(
  format: ModelFormat,
  from: Provenance,
  files: readonly Omit<PulledFile, 'path'>[],
): string {
  const revision =
    from.revision === undefined ? '' : `, revision ${from.revision.name} (${from.revision.commit})`;
  const lines = [
    `# Fetched by nereid pull from ${from.url}${revision}`,
    ...files.map(
      (file) =>
        `# ${VERSION}/${file.target}: ${file.origin}, ${file.byteLength} bytes, sha256 ${file.sha256}`,
    ),
    `backend: "${BACKENDS[format]}"`,
  ];
  const [first] = files;
  // A split model has no file of the default name; llama.cpp finds the other parts by the first.
  if (format === 'gguf' && first !== undefined && first.target !== 'model.gguf') {
    lines.push(`parameters { key: "model_file" value { string_value: "${first.target}" } }`);
  }
  return `${lines.join('\n')}\n`;
}

/** Throws unless a file begins as its format does: an error page that came with status 200 is no model. */
export async function checkBeginning(
  format: ModelFormat,
  file: { path: string; origin: string },
): Promise<void> {
  const head = await readHead(file.path);
  if (formatOfHead(head) === format) return;
  const wanted = format === 'gguf' ? 'GGUF' : 'ONNX';
  throw new PullError(
    `${file.origin} is no ${wanted} file: it begins with ${JSON.stringify(head.toString('latin1'))}`,
  );
}

export async function sniffFormat(path: string): Promise<ModelFormat | undefined> {
  return formatOfHead(await readHead(path));
}

async function readHead(path: string): Promise<Buffer> {
  const handle = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(8), 0, 8, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** An ONNX file has no magic. It is a ModelProto, whose first field has a number up to 25 and is a varint or a length. */
function formatOfHead(head: Buffer): ModelFormat | undefined {
  if (head.toString('latin1', 0, 4) === 'GGUF') return 'gguf';
  const tag = head[0] ?? 0;
  const isField = tag >> 3 >= 1 && tag >> 3 <= 25 && ((tag & 7) === 0 || (tag & 7) === 2);
  return isField && head.length > 1 ? 'onnx' : undefined;
}

/** Whether the model is there, from the same source and with the same bytes. */
export async function isUpToDate(
  directory: string,
  config: string,
  files: readonly { target: string; byteLength: number }[],
): Promise<boolean> {
  const comment = (text: string) => text.split('\n').filter((line) => line.startsWith('#'));
  const there = await readFile(join(directory, CONFIG), 'utf8').catch(() => '');
  if (!comment(config).every((line) => comment(there).includes(line))) return false;
  for (const file of files) {
    const info = await stat(join(directory, VERSION, file.target)).catch(() => undefined);
    if (info?.size !== file.byteLength) return false;
  }
  return true;
}

/** Makes the model in `work`, a directory on the repository's file system, and brings it to `directory`. */
export async function publish(model: {
  directory: string;
  work: string;
  config: string;
  files: readonly PulledFile[];
}): Promise<{ isConfigKept: boolean }> {
  const { directory, work, config, files } = model;
  if (await exists(directory)) return replace(model);
  const draft = join(work, 'model');
  await rm(draft, { recursive: true, force: true });
  await mkdir(join(draft, VERSION), { recursive: true });
  await writeFile(join(draft, CONFIG), config);
  for (const file of files) await rename(file.path, join(draft, VERSION, file.target));
  await rename(draft, directory);
  return { isConfigKept: false };
}

/** File by file, each by a rename, so that a server that polls never finds the model gone; the config comes last. */
async function replace(model: {
  directory: string;
  work: string;
  config: string;
  files: readonly PulledFile[];
}): Promise<{ isConfigKept: boolean }> {
  const { directory, work, config, files } = model;
  const version = join(directory, VERSION);
  await mkdir(version, { recursive: true });
  for (const file of files) await rename(file.path, join(version, file.target));
  const old = await readFile(join(directory, CONFIG), 'utf8').catch(() => undefined);
  const isConfigKept = old !== undefined && old !== config;
  if (isConfigKept) await writeFile(join(directory, KEPT_CONFIG), old);
  const draft = join(work, CONFIG);
  await writeFile(draft, config);
  await rename(draft, join(directory, CONFIG));
  // Model files of before that the new model does not have.
  for (const name of await readdir(version)) {
    const isOurs = files.some((file) => file.target === name);
    if (!isOurs && /^model(?:-\d{5}-of-\d{5})?\.(?:gguf|onnx)$/.test(name)) await rm(join(version, name));
  }
  return { isConfigKept };
}

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
