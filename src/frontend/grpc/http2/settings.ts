// SETTINGS frames (RFC 9113, 6.5): ours, once per connection, and what we heed of the peer's. The size of the peer's
// header table is nothing to us, since we send no indexed headers.

import type { FrameOutput } from './frame-output.ts';
import { ERROR_CODE, FRAME, FRAME_BYTES_MAX, FRAME_BYTES_MIN, SETTING, WINDOW_BYTES_MAX } from './frames.ts';
import { Http2Error } from './http2-error.ts';
import type { Http2Options } from './http2-types.ts';

/** Few frames for large tensors; a client that has small ones to send waits for one such frame at most. */
export const RECEIVED_FRAME_BYTES_MAX = 1024 * 1024;

export function writeSettings(output: FrameOutput, options: Http2Options): void {
  const settings: readonly (readonly [id: number, value: number])[] = [
    [SETTING.maxConcurrentStreams, options.maxConcurrentStreams],
    [SETTING.initialWindowSize, options.streamWindowBytes],
    [SETTING.maxFrameSize, RECEIVED_FRAME_BYTES_MAX],
    [SETTING.maxHeaderListSize, options.headerListBytesMax],
  ];
  output.frameHead(settings.length * 6, FRAME.settings, 0, 0);
  for (const [id, value] of settings) {
    output.uint16(id);
    output.uint32(value);
  }
}

export interface PeerSettings {
  initialWindowSize?: number;
  maxFrameSize?: number;
}

/** The last of equal settings counts. Throws when a value is not allowed. */
export function parseSettings(payload: Buffer): PeerSettings {
  const settings: PeerSettings = {};
  for (let at = 0; at + 6 <= payload.length; at += 6) {
    const value = payload.readUInt32BE(at + 2);
    switch (payload.readUInt16BE(at)) {
      case SETTING.enablePush:
        if (value > 1) throw new Http2Error(ERROR_CODE.protocol, 'bad SETTINGS_ENABLE_PUSH');
        break;
      case SETTING.initialWindowSize:
        if (value > WINDOW_BYTES_MAX) throw new Http2Error(ERROR_CODE.flowControl, 'window too large');
        settings.initialWindowSize = value;
        break;
      case SETTING.maxFrameSize:
        if (value < FRAME_BYTES_MIN || value > FRAME_BYTES_MAX) {
          throw new Http2Error(ERROR_CODE.protocol, 'bad SETTINGS_MAX_FRAME_SIZE');
        }
        settings.maxFrameSize = value;
        break;
    }
  }
  return settings;
}
