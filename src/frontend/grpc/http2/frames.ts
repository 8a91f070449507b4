// The numbers of HTTP/2 frames (RFC 9113) and the types that this folder shares with the gRPC layer above it.
// No state and no behaviour.
//
//   0        3      4       5            9
//   | length | type | flags | stream id  | payload, `length` bytes

export const FRAME_HEAD_BYTES = 9;

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** END_STREAM and ACK share a bit: they are flags of different frames. */
export const FLAG = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const ERROR_CODE = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export const SETTING = {
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Window of a connection, and of a stream until SETTINGS say otherwise. */
export const WINDOW_BYTES_INITIAL = 65_535;
export const WINDOW_BYTES_MAX = 2 ** 31 - 1;
/** The payload every peer must take. */
export const FRAME_BYTES_MIN = 16_384;
/** The largest that SETTINGS may allow. */
export const FRAME_BYTES_MAX = 2 ** 24 - 1;
