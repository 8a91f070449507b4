// Server reflection, so that grpcurl and the like need no .proto file. v1 and v1alpha have the same messages.

import { StatusError } from '../../domain/status.ts';
import { decodeMessage } from '../../wire/v2-proto/decode-message.ts';
import { encodeMessage } from '../../wire/v2-proto/encode-message.ts';
import { unparsableRequest } from '../../wire/v2-proto/grpc-status.ts';
import type { ReflectionRequest } from '../../wire/v2-proto/messages.ts';
import { answerReflection } from '../../wire/v2-proto/reflection-index.ts';
import { type CallHandler, type GrpcCall, outgoing } from './grpc-call.ts';

export class Reflection implements CallHandler {
  readonly #call: GrpcCall;
  readonly #types: { readonly requestType: string; readonly responseType: string };

  constructor(call: GrpcCall, types: { requestType: string; responseType: string }) {
    this.#call = call;
    this.#types = types;
  }

  onMessage(pieces: readonly Buffer[]): void {
    try {
      const request = decodeMessage(this.#types.requestType, Buffer.concat(pieces)) as ReflectionRequest;
      const response = answerReflection(request);
      const hasRoom = this.#call.write(outgoing(encodeMessage(this.#types.responseType, response)));
      if (!hasRoom) this.#call.isHolding = true;
    } catch (thrown) {
      this.#call.fail(unparsableRequest(thrown) ?? StatusError.from(thrown));
    }
  }

  onRoom(): void {
    this.#call.isHolding = false;
  }

  onHalfClose(): void {
    this.#call.finish();
  }
}
