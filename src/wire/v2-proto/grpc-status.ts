// Our status codes as gRPC's numbers: the only place that knows them.

import { internal, type StatusCode, type StatusError } from '../../domain/status.ts';
import { ProtoError } from './proto-error.ts';

export const GRPC_OK = 0;
export const GRPC_CANCELLED = 1;
export const GRPC_NOT_FOUND = 5;
export const GRPC_UNIMPLEMENTED = 12;

const GRPC_CODES: Readonly<Record<StatusCode, number>> = {
  UNKNOWN: 2,
  INTERNAL: 13,
  NOT_FOUND: GRPC_NOT_FOUND,
  INVALID_ARG: 3,
  UNAVAILABLE: 14,
  UNSUPPORTED: GRPC_UNIMPLEMENTED,
  ALREADY_EXISTS: 6,
  CANCELLED: GRPC_CANCELLED,
};

export function grpcCodeOf(code: StatusCode): number {
  return GRPC_CODES[code];
}

/** What Triton answers to a message that is not valid protobuf; undefined for any other error. */
export function unparsableRequest(thrown: unknown): StatusError | undefined {
  return thrown instanceof ProtoError ? internal('Unable to parse request') : undefined;
}
