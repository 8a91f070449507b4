// The one error of protobuf decoding. Frontends answer it as Triton does: INTERNAL, `Unable to parse request`;
// the message here says what was wrong, for the log.

export class ProtoError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ProtoError';
  }
}
