// What trace settings mean, as pure functions: how a model's settings lie over the global ones and those over the
// flags, which results are refused, and how they are shown. Used by trace-control.ts and by the frontends.

import type { TraceLevel, TraceMode } from '../../domain/trace-options.ts';

export interface TraceValues {
  readonly levels: readonly TraceLevel[];
  readonly rate: number;
  readonly count: number;
  readonly logFrequency: number;
}

/** The fields that were set; the others are those of the layer below. */
export type TraceOverrides = Partial<TraceValues>;

/** What a client changes: a field that is absent stays, null gives it back to the layer below. */
export type TraceUpdate = { readonly [Field in keyof TraceValues]?: TraceValues[Field] | null };

/** What is the same for every setting of a server. */
export interface TraceTarget {
  readonly mode: TraceMode;
  readonly file: string;
}

/** Every setting with its values, in Triton's order; only `trace_level` and `resource` may have several. */
export type TraceSettingsView = readonly (readonly [setting: string, values: readonly string[]])[];

export function applyUpdate(overrides: TraceOverrides, update: TraceUpdate): TraceOverrides {
  const merged = Object.entries({ ...overrides, ...update });
  return Object.fromEntries(merged.filter(([, value]) => value !== null && value !== undefined));
}

/** Why nothing can be traced with these values; undefined when it can. */
export function invalidReason(values: TraceValues, target: TraceTarget): string | undefined {
  if (values.levels.length === 0) return 'tracing is disabled';
  if (values.rate === 0) return 'sample rate must be non-zero';
  if (target.mode === 'triton' && target.file === '') return 'trace file name is not given';
  // Triton knows no reason for this one: its message ends with the colon.
  return values.count === 0 ? '' : undefined;
}

export function settingsView(
  values: TraceValues,
  target: TraceTarget,
  opentelemetry: readonly (readonly [string, string])[],
): TraceSettingsView {
  const view: [string, readonly string[]][] = [
    ['trace_level', levelNames(values.levels)],
    ['trace_rate', [String(values.rate)]],
    ['trace_count', [String(values.count)]],
  ];
  if (target.mode === 'triton') {
    view.push(['log_frequency', [String(values.logFrequency)]], ['trace_file', [target.file]]);
  }
  view.push(['trace_mode', [target.mode]]);
  if (target.mode === 'opentelemetry') {
    for (const name of new Set(opentelemetry.map(([setting]) => setting))) {
      view.push([name, opentelemetry.filter(([setting]) => setting === name).map(([, value]) => value)]);
    }
  }
  return view;
}

function levelNames(levels: readonly TraceLevel[]): readonly string[] {
  if (levels.length === 0) return ['OFF'];
  return (['TIMESTAMPS', 'TENSORS'] as const).filter((level) => levels.includes(level));
}
