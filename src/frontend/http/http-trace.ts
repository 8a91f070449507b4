// What the HTTP endpoints that infer tell a trace: when the request came, and when its answer left.
// They ask `services.trace.isOn` first, so that an untraced server pays one comparison.

import type { RequestTrace } from '../../domain/request-trace.ts';
import type { HttpAnswer } from './answer.ts';
import type { HttpExchange } from './http-exchange.ts';
import { headerOf } from './request-head.ts';
import type { HttpServices } from './services.ts';

/**
 * Called when the body is complete and tracing is on; `headMs` is when the head came, 0 when tracing was off then.
 * Undefined when this request is not sampled.
 */
export function startHttpTrace(
  services: HttpServices,
  exchange: HttpExchange,
  request: { readonly model: string; readonly headMs: number },
): RequestTrace | undefined {
  const trace = services.trace.start(request.model, {
    traceparent: headerOf(exchange.head, 'traceparent'),
    tracestate: headerOf(exchange.head, 'tracestate'),
  });
  const nowMs = performance.now();
  trace?.mark('HTTP_RECV_START', request.headMs === 0 ? nowMs : request.headMs);
  trace?.mark('HTTP_RECV_END', nowMs);
  return trace;
}

/** Sends the one answer of an exchange and ends its trace. */
export function respondTraced(
  exchange: HttpExchange,
  answer: HttpAnswer,
  trace: RequestTrace | undefined,
): void {
  if (trace === undefined) {
    exchange.respond(answer);
    return;
  }
  trace.mark('HTTP_SEND_START');
  exchange.respond(answer);
  trace.mark('HTTP_SEND_END');
  trace.end();
}
