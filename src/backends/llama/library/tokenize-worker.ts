// The thread of aside-tokenizer.ts: asks libllama, which this process has loaded already, for the tokens of one text after the
// other. The vocabulary is never changed, and libllama's tokenizer may be called from any thread.

import { parentPort, workerData } from 'node:worker_threads';
import koffi from 'koffi';
import { LLAMA_FUNCTIONS } from './functions.ts';
import { typeNamed } from './structs.ts';

export interface TokenizeTask {
  readonly vocab: bigint;
  readonly text: string;
  readonly isSpecialAdded: boolean;
  readonly isSpecialParsed: boolean;
}

/** Negative: libllama's own answer, that the text has more tokens than can be counted. */
export type TokenizeAnswer = Int32Array | number;

const { result, arguments: args } = LLAMA_FUNCTIONS.llama_tokenize;
const { file } = workerData as { file: string };
const tokenize = koffi.load(file).func('llama_tokenize', typeNamed(result), args.map(typeNamed)) as (
  ...args: unknown[]
) => number;

parentPort!.on('message', (task: TokenizeTask) => {
  const source = Buffer.from(task.text);
  // A token has at least one byte, the special ones at the ends aside.
  const tokens = new Int32Array(source.length + 16);
  const count = tokenize(
    ...[task.vocab, source, source.length, tokens, tokens.length],
    ...[task.isSpecialAdded, task.isSpecialParsed],
  );
  const answer: TokenizeAnswer = count < 0 ? count : tokens.slice(0, count);
  parentPort!.postMessage(answer);
});
