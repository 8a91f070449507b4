// From the bytes of a ModelInferRequest to an inference that runs: decode, find the model, convert, forward metadata,
// start. Shared by ModelInfer and ModelStreamInfer, which differ in their sinks.

import type { ServedModel } from '../../core/model/served-model.ts';
import { LATEST_VERSION } from '../../core/repository/catalog.ts';
import { inferShared } from '../../core/shm/infer-shared.ts';
import type { RequestRanges } from '../../domain/memory-range.ts';
import type { ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { invalidArgument, type StatusError } from '../../domain/status.ts';
import type { Cancellation } from '../../lib/cancellation.ts';
import type { ModelInferRequest } from '../../wire/v2-proto/decode-infer-request.ts';
import { type ConvertedInferRequest, toInferRequest } from '../../wire/v2-proto/to-infer-request.ts';
import { isReservedHeader } from '../header-forward.ts';
import { pickHeaders } from '../wanted-headers.ts';
import { findHeader } from './grpc-headers.ts';
import type { HeaderPair } from './http2/http2-types.ts';
import { versionOf } from './model-version.ts';
import type { GrpcServices } from './services.ts';

/** A request whose model is known. */
export interface FoundModel {
  readonly model: ServedModel;
  readonly version: number;
}

export function findModel(services: GrpcServices, message: ModelInferRequest): FoundModel {
  const { modelName: model, modelVersion } = message;
  const version =
    modelVersion === '' ? LATEST_VERSION : versionOf(services.catalog, { model, version: modelVersion });
  return { model: services.catalog.find(model, version), version };
}

export function convert(
  services: GrpcServices,
  message: ModelInferRequest,
  metadata: readonly HeaderPair[],
): ConvertedInferRequest {
  const pattern = services.headerForwardPattern;
  const forwardedHeaders = pattern === undefined ? undefined : forwarded(metadata, pattern);
  return toInferRequest(message, { forwardedHeaders });
}

function forwarded(metadata: readonly HeaderPair[], pattern: RegExp): Map<string, string> {
  const headers = new Map<string, string>();
  for (const [name, value] of metadata) {
    if (name.startsWith(':') || !pattern.test(name)) continue;
    if (isReservedHeader(name)) {
      throw invalidArgument(`Header '${name}' is reserved for Triton usage and cannot be forwarded.`);
    }
    headers.set(name, value);
  }
  return headers;
}

export interface StartOptions {
  readonly found: FoundModel;
  readonly converted: ConvertedInferRequest;
  readonly metadata: readonly HeaderPair[];
  readonly sink: ResponseSink;
  readonly cancellation: Cancellation;
  readonly trace: RequestTrace | undefined;
  /** The request was refused after `startInfer` had returned. */
  onRefused(error: StatusError): void;
}

/** Throws when the request is refused at once. */
export function startInfer(services: GrpcServices, options: StartOptions): void {
  const { found, converted, metadata, sink, cancellation, trace } = options;
  const target = { model: found.model.name, version: found.version };
  const wanted = found.model.wantedHeaders;
  const headers =
    wanted === undefined ? undefined : pickHeaders(wanted, (name) => findHeader(metadata, name));
  const call = { request: converted.request, sink, cancellation, trace, headers };
  const ranges = rangesOf(converted);
  if (ranges === undefined) {
    services.infer(target, call);
    return;
  }
  inferShared({
    memory: services.sharedMemory,
    ranges,
    isDecoupled: found.model.isDecoupled,
    call,
    infer: (filled) => services.infer(target, filled),
    onRefused: options.onRefused,
  });
}

/** Undefined for the ordinary request, which has no tensor in shared memory. */
function rangesOf(converted: ConvertedInferRequest): RequestRanges | undefined {
  const { sharedMemoryInputs, outputs } = converted;
  const outputRanges = new Map(
    outputs.size === 0
      ? []
      : [...outputs].flatMap(([name, { sharedMemory }]) =>
          sharedMemory === undefined ? [] : [[name, sharedMemory] as const],
        ),
  );
  if (sharedMemoryInputs.length === 0 && outputRanges.size === 0) return undefined;
  return {
    inputs: new Map(sharedMemoryInputs.map((input) => [input.inputIndex, input])),
    outputs: outputRanges,
  };
}

/** The trace of a request, if this one is sampled; context comes from W3C metadata. */
export function startTrace(
  services: GrpcServices,
  model: string,
  metadata: readonly HeaderPair[],
): RequestTrace | undefined {
  if (!services.trace.isOn) return undefined;
  const find = (name: string) => metadata.find(([key]) => key === name)?.[1];
  const traceparent = find('traceparent');
  const context = traceparent === undefined ? undefined : { traceparent, tracestate: find('tracestate') };
  return services.trace.start(model, context);
}
