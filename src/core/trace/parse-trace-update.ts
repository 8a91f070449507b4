// The texts of a trace settings request → TraceUpdate, with Triton's refusals to the byte. Protocol-free: the HTTP
// frontend takes the texts out of its JSON, the gRPC frontend calls parseTraceSettings with its lists.

import { invalidArgument, unsupported } from '../../domain/status.ts';
import type { TraceLevel } from '../../domain/trace-options.ts';
import type { TraceUpdate } from './trace-settings.ts';

const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;
const UINT32_RANGE = '[ 0, 4294967295 ]';
const COUNT_RANGE = '[ -1, 2147483647 ]';
const COUNT_MIN = -1;

/**
 * The settings of one request as lists of texts: an absent setting stays, an empty list (or null, where the
 * protocol has it) clears.
 */
export interface TraceTexts {
  has(setting: string): boolean;
  /** The values of one setting; throws where the protocol's own form is broken. */
  valuesOf(setting: string): readonly string[] | null | undefined;
  /** Between `got:` and the value in the refusal of a small count: a blank in gRPC, nothing in HTTP. */
  readonly gap: string;
}

/** In Triton's order, so that the first of several mistakes is the one named. */
export function parseTraceTexts(texts: TraceTexts): TraceUpdate {
  if (texts.has('trace_file')) {
    throw unsupported('trace file location can not be updated through network protocol');
  }
  const update: { -readonly [Field in keyof TraceUpdate]: TraceUpdate[Field] } = {};
  const levels = texts.valuesOf('trace_level');
  if (levels !== undefined) {
    const parsed = levels === null ? null : parseLevels(levels);
    if (parsed !== undefined) update.levels = parsed;
  }
  const rate = scalarOf(texts, 'trace_rate');
  if (rate !== undefined) update.rate = rate === null ? null : parseUint32('trace_rate', rate);
  const count = scalarOf(texts, 'trace_count');
  if (count !== undefined) update.count = count === null ? null : parseCount(count, texts.gap);
  const frequency = scalarOf(texts, 'log_frequency');
  if (frequency !== undefined) {
    update.logFrequency = frequency === null ? null : parseUint32('log_frequency', frequency);
  }
  return update;
}

/** The form of gRPC: a list for every setting. Undefined when there is none at all, which only asks. */
export function parseTraceSettings(
  settings: ReadonlyMap<string, readonly string[]>,
): TraceUpdate | undefined {
  if (settings.size === 0) return undefined;
  return parseTraceTexts({
    gap: ' ',
    has: (setting) => settings.has(setting),
    valuesOf: (setting) => {
      const values = settings.get(setting);
      return values?.length === 0 ? null : values;
    },
  });
}

function scalarOf(texts: TraceTexts, setting: string): string | null | undefined {
  const values = texts.valuesOf(setting);
  if (values === undefined || values === null) return values;
  if (values.length !== 1) throw invalidArgument(`expect only 1 value for '${setting}'`);
  return values[0]!;
}

/** Words that are no level are passed over; undefined when nothing else was there. */
function parseLevels(names: readonly string[]): TraceLevel[] | undefined {
  const levels = new Set<TraceLevel>();
  for (const name of names) {
    if (name === 'OFF') {
      if (names.length > 1) throw invalidArgument("Expect only one trace level 'OFF' is specified");
      return [];
    }
    if (name === 'TIMESTAMPS' || name === 'TENSORS') levels.add(name);
  }
  return levels.size === 0 ? undefined : [...levels];
}

/** Triton reads an int and stores it as unsigned: -1 becomes 4294967295. */
function parseUint32(setting: string, text: string): number {
  return parseInt32(setting, text, UINT32_RANGE) >>> 0;
}

function parseCount(text: string, gap: string): number {
  const count = parseInt32('trace_count', text, COUNT_RANGE);
  if (count < COUNT_MIN) {
    throw invalidArgument(
      `Unable to parse 'trace_count'. Expecting value >= ${COUNT_MIN}, got:${gap}${text}`,
    );
  }
  return count;
}

/** As C++ std::stoi: leading space and a sign are allowed, and whatever follows the digits is ignored. */
function parseInt32(setting: string, text: string, range: string): number {
  const digits = /^[ \t\n\v\f\r]*([+-]?\d+)/.exec(text)?.[1];
  if (digits === undefined) throw invalidArgument(`Unable to parse '${setting}', got: ${text}`);
  const value = Number(digits);
  if (value < INT32_MIN || value > INT32_MAX) {
    throw invalidArgument(`Unable to parse '${setting}', value is out of range ${range}, got: ${text}`);
  }
  return value;
}
