// The chunks of a streamed answer, whatever they hold: choices one by one, the usage when it was asked for, timings where they
// belong, errors before and after the first byte, [DONE]. chat-stream.ts and completion-endpoint.ts write through it.

import type { RoutedCall } from '../http-routes.ts';
import { usageDocument } from './answer-head.ts';
import { type ApiError, answerOf } from './api-error.ts';
import { EventStream } from './event-stream.ts';
import type { Usage } from './generation-run.ts';

export interface ChunkStreamOptions {
  readonly call: RoutedCall;
  /** What every chunk begins with. */
  readonly head: string;
  readonly hasUsageChunk: boolean;
  readonly onRoom: () => void;
}

export class ChunkStream {
  readonly #options: ChunkStreamOptions;
  readonly #stream: EventStream;
  #timings: unknown;

  constructor(options: ChunkStreamOptions) {
    this.#options = options;
    this.#stream = new EventStream(options.call, options.onRoom);
  }

  get isOpen(): boolean {
    return this.#stream.isOpen;
  }

  get isBehind(): boolean {
    return this.#stream.isBehind;
  }

  setTimings(timings: unknown): void {
    this.#timings = timings;
  }

  pushChoice(choice: object, isFinished: boolean): void {
    const { head, hasUsageChunk } = this.#options;
    const usage = hasUsageChunk ? ',"usage":null' : '';
    const timed = isFinished && !hasUsageChunk ? this.#takeTimings() : '';
    this.#stream.push(`${head}"choices":[${JSON.stringify(choice)}]${usage}${timed}}`);
  }

  finish(usage: Usage | undefined): void {
    const { head, hasUsageChunk } = this.#options;
    const counted = hasUsageChunk ? `,"usage":${JSON.stringify(usageDocument(usage))}` : '';
    const timed = this.#takeTimings();
    if (counted !== '' || timed !== '') this.#stream.push(`${head}"choices":[]${counted}${timed}}`);
    this.#stream.finish();
  }

  fail(error: ApiError): void {
    if (!this.#stream.isOpen) {
      this.#options.call.respond(answerOf(error));
      return;
    }
    this.#stream.push(error.document);
    this.#stream.end();
  }

  /** With the usage, or with a finish reason where there is no usage; alone when they come later than both. */
  #takeTimings(): string {
    const timings = this.#timings;
    this.#timings = undefined;
    return timings === undefined ? '' : `,"timings":${JSON.stringify(timings)}`;
  }
}
