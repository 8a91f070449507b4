// Which files of a repository make the model: one GGUF (with all its parts), or one ONNX file with the data beside it.
// Pure; pull.ts calls it with what the hub lists. What it cannot decide it refuses, with the list of what there is.

import { PullError } from './pull-error.ts';

export interface RepositoryFile {
  readonly path: string;
  readonly byteLength: number;
  /** Of files that the hub keeps outside of git, which is where models are. */
  readonly sha256: string | undefined;
}

export type ModelFormat = 'gguf' | 'onnx';

export interface ChosenFile extends RepositoryFile {
  /** Its name in the version directory. */
  readonly target: string;
}

export interface Choice {
  readonly format: ModelFormat;
  /** The first is the one that the backend opens. */
  readonly files: readonly ChosenFile[];
  /** Other models of the repository, by the path of their first file. */
  readonly others: readonly string[];
}

/** Best first: small enough for most machines with little loss, then nearly lossless. */
const PREFERRED_GGUF = [/[-_.]Q4_K_M\b/i, /[-_.]Q8_0\b/i];
/** Where exporters put the plain model. */
const PREFERRED_ONNX = [/^onnx\/model\.onnx$/, /^model\.onnx$/, /(?:^|\/)model\.onnx$/];
const SPLIT = /-(\d{5})-of-(\d{5})\.gguf$/i;
const LISTED_MAX = 40;

export function chooseFiles(files: readonly RepositoryFile[], pattern: string | undefined): Choice {
  const heads = files.filter((file) => isHead(file.path));
  const wanted = pattern === undefined ? heads : matching(heads, pattern);
  if (wanted.length === 0) throw noMatch(files, pattern);
  const head = wanted.length === 1 ? wanted[0] : preferred(wanted, pattern);
  if (head === undefined) {
    throw new PullError(
      `${pattern === undefined ? 'the repository holds several models' : `'${pattern}' fits several files`}; choose one with --file:\n${listText(wanted)}`,
    );
  }
  return {
    format: formatOf(head.path)!,
    files: /\.gguf$/i.test(head.path) ? partsOf(head, files) : withExternalData(head, files),
    others: heads.filter((file) => file !== head).map((file) => file.path),
  };
}

export function formatOf(path: string): ModelFormat | undefined {
  if (/\.gguf$/i.test(path)) return 'gguf';
  return /\.onnx$/i.test(path) ? 'onnx' : undefined;
}

/** The names of all parts of a split GGUF, the given one among them; undefined for a whole file. */
export function splitNames(path: string): string[] | undefined {
  const found = SPLIT.exec(path);
  if (found === null) return undefined;
  const count = Number(found[2]);
  const stem = path.slice(0, found.index);
  return Array.from(
    { length: count },
    (_, index) => `${stem}-${String(index + 1).padStart(5, '0')}-of-${found[2]}.gguf`,
  );
}

/** The name under which a file of a GGUF model is kept. llama.cpp finds the parts of a split one by their names. */
export function ggufTarget(path: string): string {
  const found = SPLIT.exec(path);
  return found === null ? 'model.gguf' : `model-${found[1]}-of-${found[2]}.gguf`;
}

/** A model's first file. Projectors and importance matrices are GGUF files too, but no models. */
function isHead(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (formatOf(name) === undefined || /^mmproj|[-_.]imatrix\b/i.test(name)) return false;
  const part = SPLIT.exec(name);
  return part === null || Number(part[1]) === 1;
}

/** An exact path, else a pattern with * and ?, else a part of the path; letters in either case. */
function matching(files: readonly RepositoryFile[], pattern: string): RepositoryFile[] {
  const exact = files.filter((file) => file.path === pattern);
  if (exact.length > 0) return exact;
  const source = pattern.replace(/[\\^$.|+()[\]{}]/g, '\\$&');
  const expression = /[*?]/.test(pattern)
    ? `^(?:.*/)?${source.replaceAll('*', '.*').replaceAll('?', '.')}$`
    : source.replace(/[*?]/g, '\\$&');
  const test = new RegExp(expression, 'i');
  return files.filter((file) => test.test(file.path));
}

function preferred(
  files: readonly RepositoryFile[],
  pattern: string | undefined,
): RepositoryFile | undefined {
  // A pattern that fits several files is an unclear wish; guessing would download the wrong gigabytes.
  if (pattern !== undefined) return undefined;
  const order = files.some((file) => formatOf(file.path) === 'gguf') ? PREFERRED_GGUF : PREFERRED_ONNX;
  for (const test of order) {
    const found = files.filter((file) => test.test(file.path));
    if (found.length === 1) return found[0];
  }
  return undefined;
}

function partsOf(head: RepositoryFile, files: readonly RepositoryFile[]): ChosenFile[] {
  const names = splitNames(head.path) ?? [head.path];
  return names.map((path) => {
    const file = files.find((one) => one.path === path);
    if (file === undefined) throw new PullError(`the repository lacks ${path}, a part of the model`);
    return { ...file, target: ggufTarget(path) };
  });
}

/** The ONNX file names its data files, so these keep their names. */
function withExternalData(head: RepositoryFile, files: readonly RepositoryFile[]): ChosenFile[] {
  const stem = head.path.replace(/\.onnx$/i, '');
  const data = files.filter(({ path }) => {
    const rest = path.startsWith(stem) ? path.slice(stem.length) : '';
    return /^(?:\.onnx)?[._](?:data|weights?)[^/]*$/i.test(rest);
  });
  return [
    { ...head, target: 'model.onnx' },
    ...data.map((file) => ({ ...file, target: file.path.slice(file.path.lastIndexOf('/') + 1) })),
  ];
}

function noMatch(files: readonly RepositoryFile[], pattern: string | undefined): PullError {
  const what = pattern === undefined ? 'no .gguf and no .onnx file' : `no model file that fits '${pattern}'`;
  return new PullError(`the repository holds ${what}. It has:\n${listText(files)}`);
}

export function listText(files: readonly RepositoryFile[]): string {
  if (files.length === 0) return '  nothing';
  const lines = files.slice(0, LISTED_MAX).map((file) => `  ${file.path}  ${bytesText(file.byteLength)}`);
  const rest = files.length - LISTED_MAX;
  return rest > 0 ? `${lines.join('\n')}\n  and ${rest} more` : lines.join('\n');
}

export function bytesText(byteLength: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = byteLength;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}
