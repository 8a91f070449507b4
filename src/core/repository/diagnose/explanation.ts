// The vocabulary of `nereid validate`: what is known of a model that did not load, and how a problem is told to
// a person. The tables of rules beside this file turn one into the other; all of them are pure.

import type { ModelConfig } from '../../../domain/model-config.ts';

export interface Explanation {
  /** One line: what is wrong. */
  readonly what: string;
  /** Why that keeps the model from serving; empty when `what` says it all. */
  readonly why: string;
  /** What to do, line by line; an indented line is to be typed as it stands. */
  readonly fix: readonly string[];
}

export interface FileTensor {
  readonly name: string;
  readonly data_type: string;
  /** With the batch dimension, if there is one. */
  readonly shape: readonly number[];
}

/** What the model file itself declares. */
export interface FileSignature {
  readonly inputs: readonly FileTensor[];
  readonly outputs: readonly FileTensor[];
  /** Every tensor starts with a variable dimension. */
  readonly canBatch: boolean;
}

export interface ModelFacts {
  readonly name: string;
  /** The model's directory, as the user would type it. */
  readonly path: string;
  /** As far as it could be read. */
  readonly config: ModelConfig | undefined;
  readonly versions: readonly number[];
  /** Directories that are no versions. */
  readonly ignored: readonly string[];
  /** Names in the model's directory. */
  readonly modelEntries: readonly string[];
  /** The version that was tried, else the first one. */
  readonly version: number | undefined;
  readonly versionEntries: readonly string[];
  /** The model file is a Git LFS pointer that was never replaced by its content. */
  readonly isLfsPointer: boolean;
  readonly file: FileSignature | undefined;
  /** Backends this program has. */
  readonly backends: readonly string[];
  readonly gpuIds: readonly number[];
}

/** From the text of an error to its explanation. */
export interface Rule {
  readonly pattern: RegExp;
  explain(match: RegExpExecArray, facts: ModelFacts): Explanation;
}

/** `in a/config.pbtxt write` and the lines to write. */
export function writeInConfig(facts: ModelFacts, lines: readonly string[]): string[] {
  return [`in ${configPath(facts)} write`, ...lines.map((line) => `  ${line}`)];
}

export function configPath(facts: ModelFacts): string {
  return `${facts.path}/config.pbtxt`;
}

/** A path as a POSIX shell takes it. */
export function shellPath(...parts: readonly (string | number)[]): string {
  const path = parts.join('/');
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function dimsText(dims: readonly number[]): string {
  return dims.length === 0 ? '[ ]' : `[ ${dims.join(', ')} ]`;
}
