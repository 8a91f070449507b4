// The server's log: levels that can be changed while it runs (GET/POST /v2/logging), Triton's line formats,
// one sink shared by a logger and its children. Logging is never awaited and never throws.

import { performance } from 'node:perf_hooks';
import {
  escapeControl,
  formatLogLine,
  formatTable,
  type LogFormat,
  type LogLetter,
  quoteMessage,
} from './log-format.ts';
import { consoleSink, fileSink, type LogSink } from './log-sink.ts';

export type { LogFormat } from './log-format.ts';

export interface LogSettings {
  /** Empty: the console. */
  readonly logFile: string;
  readonly isInfo: boolean;
  readonly isWarning: boolean;
  readonly isError: boolean;
  readonly verboseLevel: number;
  readonly format: LogFormat;
}

/** What may change at run time: everything but the file. */
export type LogSettingsUpdate = Partial<Omit<LogSettings, 'logFile'>>;

export interface Logger {
  error(message: string): void;
  warn(message: string): void;
  info(message: string): void;
  /** Written when the verbose level is at least `level` (1 or more); ask isVerbose before building costly text. */
  verbose(level: number, message: string): void;
  isVerbose(level: number): boolean;
  /** At a level that another process chose; verbose is level 1. */
  write(level: 'error' | 'warning' | 'info' | 'verbose', message: string): void;
  /** One INFO line with `title`, then the table and an empty line. */
  table(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): void;
  /** The same log under another component name: `child('http_server')`. */
  child(component: string): Logger;
  settings(): LogSettings;
  update(changes: LogSettingsUpdate): void;
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface LoggerOptions {
  readonly settings?: Partial<LogSettings>;
  readonly component?: string;
  /** In place of the console or the log file. */
  readonly sink?: LogSink;
  readonly wallMs?: () => number;
  readonly pid?: number;
  /**
   * Messages as JSON strings in double quotes, as Triton writes them unless TRITON_SERVER_ESCAPE_LOG_MESSAGES=0.
   * Without it messages are raw, but for control characters.
   */
  readonly isQuoted?: boolean;
}

export const DEFAULT_LOG_SETTINGS: LogSettings = {
  logFile: '',
  isInfo: true,
  isWarning: true,
  isError: true,
  verboseLevel: 0,
  format: 'default',
};

/** What a logger and its children share. */
interface LogState {
  settings: LogSettings;
  readonly sink: LogSink;
  readonly wallMs: () => number;
  readonly pid: number;
  readonly escape: (message: string) => string;
}

export function createLogger(options: LoggerOptions = {}): Logger {
  const settings = { ...DEFAULT_LOG_SETTINGS, ...options.settings };
  const isQuoted = options.isQuoted ?? process.env.TRITON_SERVER_ESCAPE_LOG_MESSAGES !== '0';
  const state: LogState = {
    settings,
    sink: options.sink ?? (settings.logFile === '' ? consoleSink() : fileSink(settings.logFile)),
    wallMs: options.wallMs ?? preciseWallMs,
    pid: options.pid ?? process.pid,
    escape: isQuoted ? quoteMessage : escapeControl,
  };
  return loggerOf(state, options.component ?? 'nereid');
}

function loggerOf(state: LogState, component: string): Logger {
  function line(letter: LogLetter, text: string): string {
    return formatLogLine(state.settings.format, {
      letter,
      wallMs: state.wallMs(),
      pid: state.pid,
      component,
      text,
    });
  }
  return {
    error(message) {
      if (state.settings.isError) state.sink.write(line('E', state.escape(message)), true);
    },
    warn(message) {
      if (state.settings.isWarning) state.sink.write(line('W', state.escape(message)), true);
    },
    info(message) {
      if (state.settings.isInfo) state.sink.write(line('I', state.escape(message)), false);
    },
    verbose(level, message) {
      if (state.settings.verboseLevel >= level) state.sink.write(line('I', state.escape(message)), false);
    },
    write(level, message) {
      if (level === 'error') this.error(message);
      else if (level === 'warning') this.warn(message);
      else if (level === 'info') this.info(message);
      else this.verbose(1, message);
    },
    isVerbose: (level) => state.settings.verboseLevel >= level,
    table(title, columns, rows) {
      if (!state.settings.isInfo) return;
      const table = formatTable(columns, rows);
      state.sink.write(`${line('I', escapeControl(title))}${table}\n`, false);
    },
    child: (name) => loggerOf(state, name),
    settings: () => state.settings,
    update(changes) {
      state.settings = { ...state.settings, ...changes };
    },
    flush: () => state.sink.flush(),
    close: () => state.sink.close(),
  };
}

let wallOffsetMs = performance.timeOrigin;

/** Wall time with microseconds, which Date.now has not; follows the system clock when that is set anew. */
function preciseWallMs(): number {
  const monotonicMs = performance.now();
  const systemMs = Date.now();
  if (Math.abs(wallOffsetMs + monotonicMs - systemMs) > 2) wallOffsetMs = systemMs - monotonicMs;
  return wallOffsetMs + monotonicMs;
}
