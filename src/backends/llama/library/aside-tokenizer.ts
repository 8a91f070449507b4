// Tokenizes long texts on a thread of its own, one after the other: a text of megabytes takes seconds, and the host's event loop
// has other requests to answer. The thread that decodes is no place for it either. Started with the first such text.

import { Worker } from 'node:worker_threads';
import { internal, invalidArgument } from '../../../domain/status.ts';
import type { TokenizeAnswer, TokenizeTask } from './tokenize-worker.ts';

export class AsideTokenizer {
  readonly #libraryFile: string;
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(libraryFile: string) {
    this.#libraryFile = libraryFile;
  }

  tokenize(task: TokenizeTask): Promise<number[]> {
    const tokens = this.#last.then(() => this.#ask(task));
    this.#last = tokens.catch(() => {});
    return tokens;
  }

  #ask(task: TokenizeTask): Promise<number[]> {
    const worker = this.#start();
    return new Promise((resolve, reject) => {
      const settle = (answer: TokenizeAnswer | Error) => {
        worker.off('message', settle);
        worker.off('error', settle);
        if (answer instanceof Int32Array) resolve(Array.from(answer));
        else if (answer instanceof Error) {
          this.#worker = undefined;
          reject(internal(`the tokenizer's thread has ended: ${answer.message}`));
        } else reject(invalidArgument('the text has more tokens than can be counted'));
      };
      worker.on('message', settle);
      worker.on('error', settle);
      worker.postMessage(task);
    });
  }

  #start(): Worker {
    if (this.#worker === undefined) {
      const url = new URL('./tokenize-worker.js', import.meta.url);
      this.#worker = new Worker(url, { workerData: { file: this.#libraryFile } });
      this.#worker.unref();
    }
    return this.#worker;
  }
}
