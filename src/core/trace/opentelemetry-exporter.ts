// Finished traces → OpenTelemetry spans, sent over OTLP/HTTP in batches. Loads the official packages, so it must only
// be imported in opentelemetry mode; trace-control.ts does that. Spans, names and attributes are Triton's:
//
//   InferRequest (the frontend's events) ─▶ <model> (REQUEST_*, QUEUE_START) ─▶ compute (COMPUTE_*)
//                                              └─▶ <model> of a child ─▶ compute …

import {
  type Context,
  DiagLogLevel,
  diag,
  type HrTime,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type Tracer,
  trace as traceApi,
} from '@opentelemetry/api';
import { TraceState } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
} from '@opentelemetry/sdk-trace-base';
import type { Logger } from '../../lib/logger.ts';
import type { TraceContext, TraceOrigin } from './trace-context.ts';
import type { FinishedTrace, TraceEntry, TraceRecord } from './trace-record.ts';

/** At exit the last spans have this long to leave; a collector that is down does not hold the server. */
const CLOSE_MS_MAX = 3000;

/** A collector that is down fails every export; one line in this time is enough. */
const ERROR_INTERVAL_MS = 60_000;

type Settings = readonly (readonly [setting: string, value: string])[];
type TimeEntry = Extract<TraceEntry, { readonly atMs: number }>;

export class OpentelemetryExporter {
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;
  readonly #ids = new ChosenIds();

  constructor(settings: Settings, logger: Logger) {
    logErrors(logger);
    const url = lastOf(settings, 'url');
    const processor = new BatchSpanProcessor(new OTLPTraceExporter(url === undefined ? {} : { url }), {
      maxQueueSize: Number(lastOf(settings, 'bsp_max_queue_size') ?? 2048),
      scheduledDelayMillis: Number(lastOf(settings, 'bsp_schedule_delay') ?? 5000),
      maxExportBatchSize: Number(lastOf(settings, 'bsp_max_export_batch_size') ?? 512),
    });
    this.#provider = new BasicTracerProvider({
      resource: resourceOf(settings),
      idGenerator: this.#ids,
      // Which requests are traced is decided already; as Triton, whatever the caller's own decision was.
      sampler: new AlwaysOnSampler(),
      spanProcessors: [processor],
    });
    this.#tracer = this.#provider.getTracer('triton-server');
  }

  write(finished: FinishedTrace, origin: TraceOrigin): void {
    const [first] = finished;
    const times = finished.flatMap((record) => timesOf(record)).map((entry) => entry.atMs);
    if (first === undefined || times.length === 0) return;
    const endMs = Math.max(...times);
    this.#ids.nextTraceId = origin.traceId;
    const root = this.#startSpan('InferRequest', Math.min(...times), parentContext(origin.parent));
    addEvents(root, timesOf(first).filter(isFrontendEvent));
    const models = new Map<number, Span>();
    for (const record of finished) {
      const parent = models.get(record.parentId) ?? root;
      const model = this.#writeRecord(record, traceApi.setSpan(ROOT_CONTEXT, parent), endMs);
      if (model !== undefined) models.set(record.id, model);
    }
    root.end(wallTime(endMs));
  }

  /** The span of the model, ended; undefined when the request never reached one. */
  #writeRecord(record: TraceRecord, parent: Context, endMs: number): Span | undefined {
    const times = timesOf(record);
    const startMs = timeOf(times, 'REQUEST_START');
    if (startMs === undefined || record.model === undefined) return undefined;
    const span = this.#startSpan(record.model.name, startMs, parent);
    span.setAttributes({
      'triton.model_name': record.model.name,
      'triton.model_version': record.model.version,
      'triton.trace_id': record.id,
      'triton.trace_parent_id': record.parentId,
      ...(record.requestId === '' ? {} : { 'triton.request_id': record.requestId }),
    });
    addEvents(
      span,
      times.filter((entry) => !isFrontendEvent(entry) && !isComputeEvent(entry)),
    );
    const computeMs = timeOf(times, 'COMPUTE_START');
    if (computeMs !== undefined) {
      this.#ids.nextSpanId = record.computeSpanId;
      const compute = this.#startSpan('compute', computeMs, traceApi.setSpan(ROOT_CONTEXT, span));
      addEvents(compute, times.filter(isComputeEvent));
      compute.end(wallTime(timeOf(times, 'COMPUTE_END') ?? endMs));
    }
    span.end(wallTime(timeOf(times, 'REQUEST_END') ?? endMs));
    return span;
  }

  #startSpan(name: string, atMs: number, parent: Context): Span {
    return this.#tracer.startSpan(name, { kind: SpanKind.SERVER, startTime: wallTime(atMs) }, parent);
  }

  /** What is still here is sent, as far as the collector takes it in time. */
  async close(): Promise<void> {
    const late = new Promise<void>((resolve) => {
      setTimeout(resolve, CLOSE_MS_MAX).unref();
    });
    // A failure is told to the log by the packages themselves.
    const sent = this.#provider.shutdown().catch(() => undefined);
    await Promise.race([sent, late]);
  }
}

/** Random ids, but for those that models were told of while they ran. Spans are made in one turn, so the next is the one meant. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  nextTraceId: string | undefined;
  nextSpanId: string | undefined;

  generateTraceId(): string {
    const id = this.nextTraceId ?? this.#random.generateTraceId();
    this.nextTraceId = undefined;
    return id;
  }

  generateSpanId(): string {
    const id = this.nextSpanId ?? this.#random.generateSpanId();
    this.nextSpanId = undefined;
    return id;
  }
}

function logErrors(logger: Logger): void {
  let lastMs = Number.NEGATIVE_INFINITY;
  const log = (message: string): void => {
    if (performance.now() - lastMs < ERROR_INTERVAL_MS) return;
    lastMs = performance.now();
    logger.error(`OpenTelemetry: ${message}`);
  };
  const drop = (): void => {};
  const sink = { error: log, warn: log, info: drop, debug: drop, verbose: drop };
  diag.setLogger(sink, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

function lastOf(settings: Settings, name: string): string | undefined {
  return settings.findLast(([setting]) => setting === name)?.[1];
}

/** Triton's name, then OTEL_RESOURCE_ATTRIBUTES, then the flags: `resource=<key>=<value>`. */
function resourceOf(settings: Settings): ReturnType<typeof defaultResource> {
  const given = settings
    .filter(([setting]) => setting === 'resource')
    .map(([, value]) => {
      const equals = value.indexOf('=');
      return equals < 0 ? [value, value] : [value.slice(0, equals), value.slice(equals + 1)];
    });
  return defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'triton-inference-server' }))
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes(Object.fromEntries(given)));
}

function parentContext(context: TraceContext | undefined): Context {
  if (context === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, flags, state } = context;
  return traceApi.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: true,
    ...(state === '' ? {} : { traceState: new TraceState(state) }),
  });
}

function timesOf(record: TraceRecord): TimeEntry[] {
  return record.entries.filter((entry) => 'atMs' in entry);
}

function timeOf(times: readonly TimeEntry[], activity: TimeEntry['activity']): number | undefined {
  return times.find((entry) => entry.activity === activity)?.atMs;
}

function isFrontendEvent({ activity }: TimeEntry): boolean {
  return /^(HTTP|GRPC|INFER)_/.test(activity);
}

function isComputeEvent({ activity }: TimeEntry): boolean {
  return activity.startsWith('COMPUTE_');
}

function addEvents(span: Span, entries: readonly TimeEntry[]): void {
  for (const { activity, atMs } of entries) span.addEvent(activity, wallTime(atMs));
}

/** Wall time with the precision of the steady clock; follows the system clock when that is set anew. */
let wallOffsetMs = performance.timeOrigin;

function wallTime(atMs: number): HrTime {
  const systemOffsetMs = Date.now() - performance.now();
  if (Math.abs(systemOffsetMs - wallOffsetMs) > 2) wallOffsetMs = systemOffsetMs;
  const wallMs = wallOffsetMs + atMs;
  const secs = Math.floor(wallMs / 1000);
  return [secs, Math.round((wallMs - secs * 1000) * 1e6)];
}
