// Class labels of a model's outputs, read once at load: one label per line, the line number is the class index.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal } from '../../domain/status.ts';

export type Labels = ReadonlyMap<string, readonly string[]>;

export async function readLabels(config: ModelConfig, modelDirectory: string): Promise<Labels> {
  const labels = new Map<string, readonly string[]>();
  for (const output of config.output) {
    if (output.label_filename === '') continue;
    labels.set(output.name, await readLabelFile(join(modelDirectory, output.label_filename)));
  }
  return labels;
}

async function readLabelFile(path: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (thrown) {
    throw internal(`failed to open text file for read ${path}: ${systemText(thrown)}`);
  }
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
}

/** The words strerror uses, for the errors people meet. */
function systemText(thrown: unknown): string {
  const code = (thrown as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'No such file or directory';
  if (code === 'EACCES') return 'Permission denied';
  if (code === 'EISDIR') return 'Is a directory';
  return thrown instanceof Error ? thrown.message : String(thrown);
}
