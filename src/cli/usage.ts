// The text of --help, made from the flag table, so that it cannot forget a flag.
// Pure; main.ts prints it, to stdout when asked for and to stderr after a mistake.

import { FLAG_GROUPS } from './flag-table.ts';
import type { Flag } from './flags.ts';

const LINE_WIDTH_MAX = 100;
const INDENT = ' '.repeat(8);

const HEAD = `Usage: nereid [serve] --model-repository=<directory> [options]
       nereid validate <directory> [--print-config] [--backend-directory=<directory>]
       nereid pull <owner/name | URL> [--model-repository=<directory>] [--name=<model>] [--file=<pattern>]
                   [--revision=<branch, tag or commit>] [--token=<token>] [--sha256=<checksum>] [--force]
       nereid help
       nereid --version

serve starts the server (the default), validate checks a model repository without serving it and, with
--print-config, shows the completed configuration of each model. pull fetches a GGUF or ONNX model from a
Hugging Face repository (HF_ENDPOINT, HF_TOKEN) or a URL into a model repository (models, unless named).
Values are given as --flag=value or --flag value; booleans are true or false.
`;

export function usageText(): string {
  const groups = FLAG_GROUPS.map((group) => `\n${group.title}:\n${group.flags.map(flagText).join('')}`);
  return HEAD + groups.join('');
}

function flagText(flag: Flag): string {
  const notes: string[] = [flag.help];
  if (flag.isRepeatable && !flag.help.includes('several times')) notes.push('May be given several times.');
  if (flag.default !== '') notes.push(`Default: ${flag.default}.`);
  if (flag.inert !== undefined) notes.push(`[accepted, no effect: ${flag.inert}]`);
  return `  --${flag.name}${argumentText(flag)}\n${wrap(notes.join(' '))}`;
}

function argumentText(flag: Flag): string {
  if (flag.argument !== undefined) return ` ${flag.argument}`;
  if (flag.choices !== undefined) return ` ${flag.choices.join('|')}`;
  switch (flag.type) {
    case 'switch':
      return '';
    case 'level':
      return ' <integer>';
    default:
      return ` <${flag.type}>`;
  }
}

function wrap(text: string): string {
  let lines = '';
  let line = INDENT;
  for (const word of text.split(' ')) {
    if (line.length > INDENT.length && line.length + 1 + word.length > LINE_WIDTH_MAX) {
      lines += `${line}\n`;
      line = INDENT;
    }
    line += line.length === INDENT.length ? word : ` ${word}`;
  }
  return `${lines}${line}\n`;
}
