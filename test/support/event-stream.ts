// One open generate_stream call whose events are remembered as they come; the caller may go away in the middle.
import { type ClientRequest, request } from 'node:http';
import { bodyOf, type Output, type Question } from './llama.ts';
import type { RunningServer } from './server.ts';

const SILENCE_MS_MAX = 60_000;

export class EventStream {
  readonly events: Output[] = [];
  /** The status; 0 when the connection broke. */
  readonly ended: Promise<number>;
  readonly #request: ClientRequest;
  #rest = '';
  #onEvent: (() => void) | undefined;
  #isEnded = false;

  constructor(server: RunningServer, model: string, question: Question) {
    const url = `${server.httpUrl}/v2/models/${model}/generate_stream`;
    this.#request = request(url, { method: 'POST', agent: false });
    this.ended = new Promise((resolve) => {
      const end = (status: number) => {
        this.#isEnded = true;
        this.#onEvent?.();
        resolve(status);
      };
      this.#request.on('error', () => end(0));
      this.#request.setTimeout(SILENCE_MS_MAX, () => this.#request.destroy(new Error('silence')));
      this.#request.on('response', (response) => {
        response.setEncoding('utf8').on('data', (text: string) => this.#take(text));
        response.on('end', () => end(response.statusCode ?? 0));
        response.on('error', () => end(0));
      });
    });
    this.#request.end(bodyOf({ stream: true, ...question }));
  }

  /** Resolves when there are so many events; throws when it ended before. */
  async received(count: number): Promise<void> {
    while (this.events.length < count) {
      if (this.#isEnded)
        throw new Error(`ended after ${this.events.length} events: ${JSON.stringify(this.events)}`);
      await new Promise<void>((resolve) => {
        this.#onEvent = resolve;
      });
    }
  }

  destroy(): void {
    this.#request.destroy();
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split('\n\n');
    this.#rest = parts.pop() ?? '';
    for (const part of parts) this.events.push(JSON.parse(part.replace(/^data: /, '')) as Output);
    this.#onEvent?.();
  }
}
