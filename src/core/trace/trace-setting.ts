// One setting in force, global or of a model: it counts and samples requests, and gathers the traces it has sampled
// until they are written. A change makes a new one; the old one lives on until its last trace is in.

import type { TraceLevel } from '../../domain/trace-options.ts';
import type { TraceArray, TraceFiles } from './trace-files.ts';
import { traceJson } from './trace-json.ts';
import type { FinishedTrace } from './trace-record.ts';
import { invalidReason, type TraceOverrides, type TraceTarget, type TraceValues } from './trace-settings.ts';

/** More text than this does not wait for the end: it goes to the file it is meant for. */
const BUFFER_CHARS_MAX = 1024 * 1024;

export class TraceSetting {
  readonly #values: TraceValues;
  readonly #target: TraceTarget;
  readonly #isPossible: boolean;
  readonly #files: TraceFiles;
  readonly overrides: TraceOverrides;
  /** How many more may be sampled; -1 is without limit. */
  #count: number;
  #requestCount = 0;
  #collectedCount = 0;
  #openCount = 0;
  #isRetired = false;
  /** Traces that wait, and the open file where some of their group are already. */
  #texts: string[] = [];
  #charCount = 0;
  #groupCount = 0;
  #open: TraceArray | undefined;

  constructor(
    layer: { values: TraceValues; overrides: TraceOverrides },
    target: TraceTarget,
    files: TraceFiles,
  ) {
    this.#values = layer.values;
    this.overrides = layer.overrides;
    this.#count = layer.values.count;
    this.#target = target;
    this.#files = files;
    this.#isPossible = invalidReason({ ...layer.values, count: -1 }, target) === undefined;
  }

  /** With the count as it is now. */
  get values(): TraceValues {
    return { ...this.#values, count: this.#count };
  }

  get levels(): readonly TraceLevel[] {
    return this.#values.levels;
  }

  /** False: no request can be sampled, so that nobody need ask. */
  get isOn(): boolean {
    if (this.#values.levels.length === 0) return false;
    return this.#target.mode === 'opentelemetry' || (this.#isPossible && this.#count !== 0);
  }

  /**
   * Whether this request is traced. A request that brings a context is, whatever rate and count say; rate 0 traces
   * no other.
   */
  sample(isForced: boolean): boolean {
    if (this.#values.levels.length === 0) return false;
    const isHit = this.#isHit(isForced);
    if (!isHit && !isForced) return false;
    this.#openCount++;
    return true;
  }

  #isHit(isForced: boolean): boolean {
    const { rate } = this.#values;
    if (rate === 0 || ((!this.#isPossible || this.#count === 0) && !isForced)) return false;
    this.#requestCount++;
    if (this.#requestCount % rate !== 0 || this.#count === 0) return false;
    if (this.#count > 0) this.#count--;
    return true;
  }

  /** Takes a trace that this setting has sampled, to be written. */
  collect(trace: FinishedTrace): void {
    this.#add(traceJson(trace));
    this.#collectedCount++;
    this.#groupCount++;
    const { logFrequency } = this.#values;
    const isGroupFull = logFrequency !== 0 && this.#groupCount >= logFrequency;
    // As Triton decides it: every request was traced (rate 1) and no other will be.
    const isLast = this.#count === 0 && this.#collectedCount === this.#requestCount;
    if (isGroupFull || isLast) this.#writeIndexed();
    else if (this.#charCount > BUFFER_CHARS_MAX) this.#spill();
    this.release();
  }

  #add(text: string): void {
    if (text === '') return;
    this.#texts.push(text);
    this.#charCount += text.length;
  }

  /** A trace that this setting has sampled is done; also for those that are not written to a file. */
  release(): void {
    this.#openCount--;
    if (this.#isRetired && this.#openCount === 0) this.flush();
  }

  /** Another setting is in force. */
  retire(): void {
    this.#isRetired = true;
    if (this.#openCount === 0) this.flush();
  }

  /** Writes what is left: to `<file>`, or with a frequency to the next numbered one. */
  flush(): void {
    if (this.#values.logFrequency !== 0) {
      this.#writeIndexed();
      return;
    }
    this.#takeTo(this.#files.main());
    this.#groupCount = 0;
  }

  get isDone(): boolean {
    return this.#isRetired && this.#openCount === 0;
  }

  #writeIndexed(): void {
    if (this.#texts.length > 0) this.#open ??= this.#files.nextIndexed();
    if (this.#open !== undefined) this.#takeTo(this.#open);
    this.#open?.finish();
    this.#open = undefined;
    this.#groupCount = 0;
  }

  #spill(): void {
    if (this.#values.logFrequency === 0) {
      this.#takeTo(this.#files.main());
      return;
    }
    this.#open ??= this.#files.nextIndexed();
    this.#takeTo(this.#open);
  }

  #takeTo(array: TraceArray): void {
    if (this.#texts.length > 0) array.append(this.#texts.join(','));
    this.#texts = [];
    this.#charCount = 0;
  }
}
