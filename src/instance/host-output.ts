// What a host process prints: line by line to the log, and the end of its standard error, which often is the reason
// why it died. A model that prints without end is read slowly, so that it waits and the server does not.
// HostProcess makes one per process.

import type { Readable } from 'node:stream';
import type { LogLevel } from '../backend/sdk.ts';

/** A traceback of some depth. */
const TAIL_CHARS = 2000;

/** What was printed longer before the end than this has nothing to do with it. */
const TAIL_MS = 2000;

/** Read per stream and step; about 300 KiB/s, far above a useful log and far below what would hold up the server. */
const STEP_CHARS_MAX = 32 * 1024;
const STEP_MS = 100;

/** A line without an end is cut here. */
const LINE_CHARS_MAX = 16 * 1024;

export class HostOutput {
  readonly #streams: readonly Readable[];
  readonly #onLine: (level: LogLevel, line: string) => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  #tail = '';
  #printedAtMs = 0;
  #isEnding = false;

  constructor(options: {
    readonly stdout: Readable;
    readonly stderr: Readable;
    onLine(level: LogLevel, line: string): void;
  }) {
    this.#streams = [options.stdout, options.stderr];
    this.#onLine = options.onLine;
    this.#forward(options.stdout, 'info', () => {});
    this.#forward(options.stderr, 'warning', (text) => this.#remember(text));
  }

  /** The process has gone: the rest is short and wanted now. */
  end(): void {
    this.#isEnding = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const stream of this.#streams) stream.resume();
  }

  /** Nothing is read after this. Children that the model left behind must not print into the void for ever. */
  close(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  /** The last lines of standard error; empty when nothing was printed lately. */
  lastWords(): string {
    if (performance.now() - this.#printedAtMs > TAIL_MS) return '';
    const text = this.#tail.trimEnd();
    // The first line may be cut.
    return text.length < TAIL_CHARS ? text.trimStart() : text.slice(text.indexOf('\n') + 1);
  }

  #remember(text: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#printedAtMs > TAIL_MS) this.#tail = '';
    this.#printedAtMs = nowMs;
    this.#tail = (this.#tail + text).slice(-TAIL_CHARS);
  }

  #forward(stream: Readable, level: LogLevel, onText: (text: string) => void): void {
    let rest = '';
    let readChars = 0;
    let stepStartMs = 0;
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      onText(text);
      const lines = (rest + text).split('\n');
      rest = lines.pop()!.slice(-LINE_CHARS_MAX);
      for (const line of lines) if (line.trim() !== '') this.#onLine(level, line);
      const nowMs = performance.now();
      if (nowMs - stepStartMs > STEP_MS) {
        stepStartMs = nowMs;
        readChars = 0;
      }
      readChars += text.length;
      if (readChars > STEP_CHARS_MAX && !this.#isEnding) this.#pause(stream);
    });
    stream.on('end', () => {
      if (rest.trim() !== '') this.#onLine(level, rest);
    });
    stream.on('error', () => {});
  }

  #pause(stream: Readable): void {
    stream.pause();
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      stream.resume();
    }, STEP_MS);
    this.#timers.add(timer);
  }
}
