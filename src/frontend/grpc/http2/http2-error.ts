// A connection error of RFC 9113, 5.4.1. Thrown while received bytes are read and caught in one place,
// Http2Connection, which tells the client with a GOAWAY and closes. Stream errors are no exceptions.

export class Http2Error extends Error {
  /** One of ERROR_CODE. */
  readonly code: number;

  /** The message goes to the client as debug data of the GOAWAY frame. */
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
