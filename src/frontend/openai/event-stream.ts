// Server-sent events on one answer: all events of a turn of the event loop leave in one write. The head is sent with the
// first event, so that until then the answer can still be an error with a status of its own. The streams of chat and text
// completions write to it.

import type { RoutedCall, RoutedWriter } from '../http-routes.ts';

const EVENT_STREAM_TYPE = 'text/event-stream; charset=utf-8';
/** Proxies that gather answers would turn the stream into one piece. */
const HEADERS = 'Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n';
const DONE = '[DONE]';
/** A turn that brings more than this does not wait for its end. */
const PENDING_CHARS_MAX = 64 * 1024;

export class EventStream {
  readonly #call: RoutedCall;
  readonly #onRoom: () => void;
  #writer: RoutedWriter | undefined;
  #pending = '';
  #isScheduled = false;
  #isBehind = false;
  #isOver = false;

  /** `onRoom` is called when the client was behind and has caught up. */
  constructor(call: RoutedCall, onRoom: () => void) {
    this.#call = call;
    this.#onRoom = onRoom;
  }

  /** True from the first event on. */
  get isOpen(): boolean {
    return this.#writer !== undefined || this.#pending !== '';
  }

  get isBehind(): boolean {
    return this.#isBehind;
  }

  push(json: string): void {
    if (this.#isOver) return;
    this.#pending += `data: ${json}\n\n`;
    if (this.#pending.length > PENDING_CHARS_MAX) this.#flush();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#flush();
      });
    }
  }

  /** With the sign that all has come. */
  finish(): void {
    this.push(DONE);
    this.end();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#open().end(this.#pending === '' ? undefined : Buffer.from(this.#pending));
    this.#pending = '';
  }

  #flush(): void {
    if (this.#isOver || this.#pending === '') return;
    const bytes = Buffer.from(this.#pending);
    this.#pending = '';
    if (!this.#open().write(bytes)) this.#isBehind = true;
  }

  #open(): RoutedWriter {
    if (this.#writer === undefined) {
      this.#writer = this.#call.begin({ status: 200, type: EVENT_STREAM_TYPE, headers: HEADERS });
      this.#writer.onDrain = () => {
        this.#isBehind = false;
        this.#onRoom();
      };
    }
    return this.#writer;
  }
}
