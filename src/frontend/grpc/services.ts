// What the gRPC frontend needs of the server behind it: the services of every frontend, and its own settings.

import type { RestrictedApis, ServerServices } from '../services.ts';

export interface GrpcServices extends ServerServices {
  /** Undefined: no metadata is forwarded. */
  readonly headerForwardPattern: RegExp | undefined;
  /** Keys have the prefix `triton-grpc-protocol-`. */
  readonly restrictedProtocols: RestrictedApis;
  /** Of inference answers. */
  readonly compressionLevel: 'none' | 'low' | 'medium' | 'high';
  /** Responses of one request that may wait for the client before its model is asked to pause. */
  readonly responsePoolMax: number;
  /** The server ends; new requests are refused. */
  isStopping(): boolean;
}
