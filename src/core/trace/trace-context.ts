// The W3C trace context of a request: `traceparent` and `tracestate` as headers or metadata carry them.
// Pure; a context that is not valid is none, as the standard says.

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  readonly flags: number;
  /** Empty when there is none. */
  readonly state: string;
}

/** To which trace the spans of a request belong. */
export interface TraceOrigin {
  /** Undefined where traces are not spans. */
  readonly traceId: string | undefined;
  /** The caller's span. */
  readonly parent: TraceContext | undefined;
}

export interface TraceContextTexts {
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

export function parseTraceContext(texts: TraceContextTexts): TraceContext | undefined {
  if (texts.traceparent === undefined) return undefined;
  const match = TRACEPARENT.exec(texts.traceparent.trim());
  if (match === null) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = match;
  // Later versions may append fields, version 00 may not, and ff is none.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state: texts.tracestate ?? '' };
}
