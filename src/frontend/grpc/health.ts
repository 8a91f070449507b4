// grpc.health.v1: the standard health check, as load balancers and probes ask it. Every service name is answered with
// the readiness of the server, as in Triton. Watch, which Triton does not have, tells changes.

import { decodeMessage } from '../../wire/v2-proto/decode-message.ts';
import { encodeMessage } from '../../wire/v2-proto/encode-message.ts';
import type { MessageTypes, ServingStatus } from '../../wire/v2-proto/messages.ts';
import { type CallHandler, type GrpcCall, outgoing } from './grpc-call.ts';
import type { GrpcServices } from './services.ts';

/** How often a watcher's answer is looked at again. */
const WATCH_MS = 500;

export function healthCheck(services: GrpcServices): MessageTypes['grpc.health.v1.HealthCheckResponse'] {
  return { status: services.isReady() ? 'SERVING' : 'NOT_SERVING' };
}

export class HealthWatch implements CallHandler {
  readonly #services: GrpcServices;
  readonly #call: GrpcCall;
  #timer: NodeJS.Timeout | undefined;
  #told: ServingStatus | undefined;

  constructor(services: GrpcServices, call: GrpcCall) {
    this.#services = services;
    this.#call = call;
    call.cancellation.onCancel(() => clearInterval(this.#timer));
  }

  onMessage(pieces: readonly Buffer[]): void {
    if (this.#timer !== undefined) return;
    decodeMessage('grpc.health.v1.HealthCheckRequest', Buffer.concat(pieces));
    this.#tell();
    this.#timer = setInterval(() => this.#tell(), WATCH_MS);
    this.#timer.unref();
  }

  onHalfClose(): void {}

  #tell(): void {
    if (this.#call.isEnded) {
      clearInterval(this.#timer);
      return;
    }
    const status = statusOf(this.#services);
    if (status === this.#told) return;
    this.#told = status;
    this.#call.write(outgoing(encodeMessage('grpc.health.v1.HealthCheckResponse', { status })));
  }
}

function statusOf(services: GrpcServices): ServingStatus {
  try {
    return services.isReady() ? 'SERVING' : 'NOT_SERVING';
  } catch {
    return 'NOT_SERVING';
  }
}
