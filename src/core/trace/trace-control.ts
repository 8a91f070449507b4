// The server's tracing: the global setting, those of models, and which requests are traced. server.ts makes one;
// frontends ask `isOn` and then `start`, and read and change the settings.

import { randomBytes } from 'node:crypto';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { invalidArgument } from '../../domain/status.ts';
import type { TraceOptions } from '../../domain/trace-options.ts';
import type { Logger } from '../../lib/logger.ts';
import type { OpentelemetryExporter } from './opentelemetry-exporter.ts';
import { parseTraceContext, type TraceContextTexts, type TraceOrigin } from './trace-context.ts';
import { TraceFiles } from './trace-files.ts';
import { type FinishedTrace, startRecording } from './trace-record.ts';
import { TraceSetting } from './trace-setting.ts';
import {
  applyUpdate,
  invalidReason,
  settingsView,
  type TraceOverrides,
  type TraceSettingsView,
  type TraceUpdate,
  type TraceValues,
} from './trace-settings.ts';

export interface TraceParts {
  readonly logger: Logger;
  /** Whether a version of the model serves now. */
  hasModel(name: string): boolean;
}

const TRACE_ID_BYTES = 16;

export class TraceControl {
  readonly #options: TraceOptions;
  readonly #parts: TraceParts;
  readonly #defaults: TraceValues;
  readonly #files: TraceFiles;
  #global: TraceSetting;
  readonly #models = new Map<string, TraceSetting>();
  /** Every setting that may still have something to write. */
  readonly #settings = new Set<TraceSetting>();
  /** Undefined until the packages are loaded, and for good when they cannot be. */
  readonly #exporter: Promise<OpentelemetryExporter | undefined> | undefined;
  #isOn = false;
  #lastId = 0;
  #isClosed = false;

  constructor(options: TraceOptions, parts: TraceParts) {
    this.#options = options;
    this.#parts = parts;
    const { levels, rate, count, logFrequency } = options;
    // Triton keeps both as unsigned.
    this.#defaults = { levels, rate: rate >>> 0, count, logFrequency: logFrequency >>> 0 };
    this.#files = new TraceFiles(options.file, parts.logger);
    this.#global = this.#createSetting({ values: this.#defaults, overrides: {} });
    if (options.mode === 'opentelemetry') this.#exporter = this.#loadExporter();
    this.#look();
  }

  /** The one question an untraced request costs. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** The trace of a request for this model; undefined when it is not sampled. */
  start(model: string, context?: TraceContextTexts): RequestTrace | undefined {
    const setting = this.#models.get(model) ?? this.#global;
    const { levels } = setting;
    const isOpentelemetry = this.#exporter !== undefined;
    const parent = isOpentelemetry && context !== undefined ? parseTraceContext(context) : undefined;
    if (!setting.sample(parent !== undefined)) return undefined;
    if (!setting.isOn) this.#look();
    const traceId = isOpentelemetry
      ? (parent?.traceId ?? randomBytes(TRACE_ID_BYTES).toString('hex'))
      : undefined;
    return startRecording({
      traceId,
      hasTimestamps: levels.includes('TIMESTAMPS'),
      hasTensors: levels.includes('TENSORS') && !isOpentelemetry,
      nextId: () => ++this.#lastId,
      onFinished: (trace) => this.#finish(setting, trace, { traceId, parent }),
    });
  }

  #finish(setting: TraceSetting, trace: FinishedTrace, origin: TraceOrigin): void {
    if (this.#isClosed) return;
    if (this.#exporter === undefined) {
      setting.collect(trace);
    } else {
      setting.release();
      void this.#exporter.then((exporter) => exporter?.write(trace, origin));
    }
    if (setting.isDone) this.#settings.delete(setting);
  }

  /**
   * What a settings request of any protocol does: the setting of a model (the global one for '') as it is after the
   * change that `parse` reads from the request, if it reads one. The model is checked first, as in Triton. Throws
   * INVALID_ARG when it is unknown or nothing could be traced with the result.
   */
  exchange(model: string, parse?: () => TraceUpdate | undefined): TraceSettingsView {
    this.#requireModel(model);
    const update = parse?.();
    if (update !== undefined) this.#update(model, update);
    const setting = this.#models.get(model) ?? this.#global;
    return settingsView(setting.values, this.#options, this.#options.opentelemetry);
  }

  #update(model: string, update: TraceUpdate): void {
    try {
      if (model !== '') {
        this.#updateModel(model, update);
        return;
      }
      this.#updateGlobal(update);
      // Each model follows where it has no value of its own; Triton stops at the first that cannot.
      for (const name of this.#models.keys()) this.#updateModel(name, {});
    } finally {
      this.#look();
    }
  }

  #requireModel(model: string): void {
    if (model !== '' && !this.#parts.hasModel(model)) {
      throw invalidArgument(`Request for unknown model : ${model}`);
    }
  }

  #updateGlobal(update: TraceUpdate): void {
    const overrides = applyUpdate(overridesOf(this.#global), update);
    const setting = this.#validSetting({ values: { ...this.#defaults, ...overrides }, overrides });
    this.#retire(this.#global);
    this.#global = setting;
  }

  #updateModel(model: string, update: TraceUpdate): void {
    const current = this.#models.get(model);
    const overrides = applyUpdate(current === undefined ? {} : overridesOf(current), update);
    if (Object.keys(overrides).length === 0) {
      this.#models.delete(model);
    } else {
      const values = { ...this.#global.values, ...overrides };
      this.#models.set(model, this.#validSetting({ values, overrides }));
    }
    if (current !== undefined) this.#retire(current);
  }

  /** What switches tracing off is always good. */
  #validSetting(layer: { values: TraceValues; overrides: TraceOverrides }): TraceSetting {
    const reason = invalidReason(layer.values, this.#options);
    if (reason !== undefined && layer.values.levels.length > 0) {
      throw invalidArgument(`Attempting to set invalid trace setting :${reason}`);
    }
    return this.#createSetting(layer);
  }

  #createSetting(layer: { values: TraceValues; overrides: TraceOverrides }): TraceSetting {
    const setting = new TraceSetting(layer, this.#options, this.#files);
    this.#settings.add(setting);
    return setting;
  }

  #retire(setting: TraceSetting): void {
    setting.retire();
    if (setting.isDone) this.#settings.delete(setting);
  }

  #look(): void {
    const settings = [this.#global, ...this.#models.values()];
    this.#isOn = !this.#isClosed && settings.some((setting) => setting.isOn);
  }

  async #loadExporter(): Promise<OpentelemetryExporter | undefined> {
    const { logger } = this.#parts;
    if (this.#options.levels.includes('TENSORS')) {
      logger.error('Tensor level tracing is not supported by the mode: opentelemetry');
    }
    try {
      // Loaded here so that servers in any other mode do not have the packages in memory.
      const { OpentelemetryExporter } = await import('./opentelemetry-exporter.ts');
      return new OpentelemetryExporter(this.#options.opentelemetry, logger);
    } catch (thrown) {
      logger.error(
        `OpenTelemetry does not start: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
      );
      return undefined;
    }
  }

  /** No more traces; what was traced is written. The requests must have ended. */
  async close(): Promise<void> {
    // A trace that ended just now is handed over at the end of the turn.
    await new Promise((resolve) => setImmediate(resolve));
    this.#isClosed = true;
    this.#isOn = false;
    for (const setting of this.#settings) setting.flush();
    await this.#files.close();
    await (await this.#exporter)?.close();
  }
}

/** A count that was set is what is left of it. */
function overridesOf(setting: TraceSetting): TraceOverrides {
  const { overrides } = setting;
  return overrides.count === undefined ? overrides : { ...overrides, count: setting.values.count };
}
