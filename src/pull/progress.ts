// How far a pull is: a bar on a terminal, a line now and then elsewhere. The texts are pure; Progress writes them.
// Made by pull-command.ts and told by pull.ts.

import { bytesText } from './choose-files.ts';

export interface ProgressState {
  readonly name: string;
  readonly doneByteLength: number;
  /** Undefined when the server does not tell. */
  readonly totalByteLength: number | undefined;
  readonly bytesPerSecond: number;
}

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const CLEAR_LINE = '\r\u001b[2K';
const BAR_MS = 100;
const LINE_MS = 10_000;
const BAR_WIDTH_MAX = 30;
/** Some terminals say 0. */
const COLUMNS_UNKNOWN = 80;
/** The speed is that of about the last so many milliseconds. */
const SPEED_MS = 3_000;

export function barText(state: ProgressState, columns: number): string {
  const { doneByteLength, totalByteLength, bytesPerSecond } = state;
  const speed = `${bytesText(Math.round(bytesPerSecond))}/s`;
  if (totalByteLength === undefined)
    return cut(`${state.name}  ${bytesText(doneByteLength)}  ${speed}`, columns);
  const share = totalByteLength === 0 ? 1 : Math.min(1, doneByteLength / totalByteLength);
  const numbers = `${String(Math.floor(share * 100)).padStart(3)} %  ${bytesText(doneByteLength)} of ${bytesText(totalByteLength)}  ${speed}${leftText(state)}`;
  const room = Math.min(BAR_WIDTH_MAX, columns - state.name.length - numbers.length - 7);
  if (room < 5) return cut(`${state.name}  ${numbers}`, columns);
  const full = Math.round(share * room);
  return `${state.name}  [${'#'.repeat(full)}${'-'.repeat(room - full)}]  ${numbers}`;
}

export function lineText(state: ProgressState): string {
  const { doneByteLength, totalByteLength, bytesPerSecond } = state;
  const total = totalByteLength === undefined ? '' : ` of ${bytesText(totalByteLength)}`;
  return `${state.name}: ${bytesText(doneByteLength)}${total}, ${bytesText(Math.round(bytesPerSecond))}/s${leftText(state)}`;
}

function leftText({ doneByteLength, totalByteLength, bytesPerSecond }: ProgressState): string {
  if (totalByteLength === undefined || bytesPerSecond <= 0) return '';
  const seconds = Math.ceil((totalByteLength - doneByteLength) / bytesPerSecond);
  if (seconds <= 0) return '';
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `, ${seconds} s left` : `, ${minutes} min ${seconds % 60} s left`;
}

function cut(text: string, columns: number): string {
  return text.length < columns ? text : text.slice(0, Math.max(0, columns - 1));
}

/** Where the lines of a pull go. While a bar is shown, a line that is said stands above it. */
export class Progress {
  #terminal: Terminal;
  #nowMs: () => number;
  #isBarShown = false;
  #shownMs = Number.NEGATIVE_INFINITY;
  #from = { ms: 0, byteLength: 0 };
  #name = '';

  constructor(terminal: Terminal, nowMs: () => number) {
    this.#terminal = terminal;
    this.#nowMs = nowMs;
  }

  say(text: string): void {
    this.#terminal.write(`${this.#isBarShown ? CLEAR_LINE : ''}${text}\n`);
    this.#isBarShown = false;
  }

  /** Takes the bar away, for somebody else's line. */
  clear(): void {
    if (this.#isBarShown) this.#terminal.write(CLEAR_LINE);
    this.#isBarShown = false;
  }

  /** Begins a file, of which the first `doneByteLength` bytes are there. */
  begin(name: string, doneByteLength: number): void {
    this.#name = name;
    this.#from = { ms: this.#nowMs(), byteLength: doneByteLength };
    this.#shownMs = this.#terminal.isTTY ? Number.NEGATIVE_INFINITY : this.#nowMs();
  }

  update(doneByteLength: number, totalByteLength: number | undefined): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#shownMs < (this.#terminal.isTTY ? BAR_MS : LINE_MS)) return;
    // A file that is fetched anew begins below what it had.
    if (doneByteLength < this.#from.byteLength) this.#from = { ms: nowMs, byteLength: doneByteLength };
    const elapsedMs = Math.max(1, nowMs - this.#from.ms);
    const state: ProgressState = {
      name: this.#name,
      doneByteLength,
      totalByteLength,
      bytesPerSecond: ((doneByteLength - this.#from.byteLength) / elapsedMs) * 1000,
    };
    if (elapsedMs > 2 * SPEED_MS) {
      const kept = (state.bytesPerSecond * SPEED_MS) / 1000;
      this.#from = { ms: nowMs - SPEED_MS, byteLength: doneByteLength - kept };
    }
    this.#shownMs = nowMs;
    if (this.#terminal.isTTY) {
      this.#terminal.write(`${CLEAR_LINE}${barText(state, this.#terminal.columns || COLUMNS_UNKNOWN)}`);
      this.#isBarShown = true;
    } else this.#terminal.write(`${lineText(state)}\n`);
  }
}
