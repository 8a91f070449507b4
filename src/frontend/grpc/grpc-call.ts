// One gRPC call on one HTTP/2 stream: messages in and out, the deadline, the end. What the call means is its handler's,
// which is given at the start; the call promises that it ends exactly once.

import { GRPC_QUEUED_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError } from '../../domain/status.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import type { Lease, LentBytes } from '../../lib/chunk-pool.ts';
import { grpcCodeOf } from '../../wire/v2-proto/grpc-status.ts';
import { isKnownEncoding, pack, unpack } from './compression.ts';
import { type CallHeaders, type GrpcEncoding, headBlock, OK_TRAILERS, statusBlock } from './grpc-headers.ts';
import type { Http2Stream, StreamConsumer } from './http2/http2-types.ts';
import { largeMessages } from './large-messages.ts';
import {
  type MessageLender,
  MessageReader,
  MessageTooLarge,
  PREFIX_BYTES,
  type ReceivedMessage,
} from './message-reader.ts';

export interface CallHandler {
  /** Pieces of one message, uncompressed. Messages come in the order in which they were sent. */
  onMessage(pieces: readonly Buffer[], byteLength: number, lease: Lease | undefined): void;
  /** The client sends no more. */
  onHalfClose(): void;
  /** True: large messages may come with a lease, which the handler releases when it can. */
  readonly isReturningMessages?: boolean;
  /** Only after `write` returned false: the client has taken everything. */
  onRoom?(): void;
}

/** The first part begins with PREFIX_BYTES of room, which the call fills; `byteLength` does not count them. */
export interface OutgoingMessage {
  readonly parts: readonly Buffer[];
  readonly byteLength: number;
}

export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

const DEADLINE_EXCEEDED: GrpcStatus = { code: 4, message: 'Deadline Exceeded' };
const RESOURCE_EXHAUSTED_CODE = 8;
const UNIMPLEMENTED_CODE = 12;

/** Longer timers do not fit; such a deadline is none. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class GrpcCall implements StreamConsumer, MessageLender {
  readonly headers: CallHeaders;
  /** The client has gone or its deadline has passed. */
  readonly cancellation = new Cancellation();
  readonly #stream: Http2Stream;
  readonly #reader = new MessageReader((message) => this.#onMessage(message));
  #handler: CallHandler | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #isHeadSent = false;
  #isEnded = false;
  #isRoomWanted = false;
  /** Messages that are being unpacked or packed; the next ones wait for their turn. */
  #unpacking: Promise<void> | undefined;
  #packing: Promise<void> | undefined;
  #packingBytes = 0;
  /** Of our messages. */
  encoding: GrpcEncoding = 'identity';
  /** Received and not yet read: the handler holds the client back, or a message is being unpacked. */
  readonly #received: Buffer[] = [];
  #isEndReceived = false;
  #isReading = false;
  #isHolding = false;
  /** Of messages that largeMessages knows. */
  #largeBytes = 0;

  constructor(stream: Http2Stream, headers: CallHeaders) {
    this.#stream = stream;
    this.headers = headers;
  }

  /** Called once, before any data. */
  start(handler: CallHandler): void {
    this.#handler = handler;
    if (handler.isReturningMessages === true) this.#reader.lender = this;
    const { encoding, timeoutMs } = this.headers;
    if (!isKnownEncoding(encoding)) {
      this.end({
        code: UNIMPLEMENTED_CODE,
        message: `Compression algorithm '${encoding}' is not supported.`,
      });
      return;
    }
    if (timeoutMs > TIMER_MS_MAX) return;
    this.#deadline = setTimeout(() => {
      this.end(DEADLINE_EXCEEDED);
      this.cancellation.cancel();
    }, timeoutMs);
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** While true nothing is read, and the client may send only what its flow-control window still allows. */
  set isHolding(isHolding: boolean) {
    this.#isHolding = isHolding;
    this.#read();
  }

  /** The one answer of a unary call; the lease, if any, is that of its parts (Http2Stream.sendAll). */
  respond(message: OutgoingMessage, lease?: Lease): void {
    if (this.#isEnded) return;
    if (this.encoding !== 'identity') {
      this.write(message);
      this.finish();
      return;
    }
    this.#markEnded();
    writePrefix(message.parts[0]!, 0, message.byteLength);
    this.#stream.sendAll(headBlock('identity'), message.parts, OK_TRAILERS, lease);
  }

  /** One of many answers. False: the client reads too slowly; `onRoom` will tell when it has caught up. */
  write(message: OutgoingMessage): boolean {
    if (this.#isEnded) return true;
    if (this.encoding === 'identity') this.#send(message, 0);
    else {
      this.#packingBytes += message.byteLength;
      this.#afterPacking(() => this.#packAndSend(message));
    }
    const hasRoom = this.#queuedBytes <= GRPC_QUEUED_BYTES_MAX;
    if (!hasRoom) this.#isRoomWanted = true;
    return hasRoom;
  }

  /** True when the client has not taken everything; `onRoom` will tell when it has. */
  wantRoom(): boolean {
    if (this.#queuedBytes > 0) this.#isRoomWanted = true;
    return this.#isRoomWanted;
  }

  /** The good end of a call with `write`. */
  finish(): void {
    this.#afterPacking(() => this.end(undefined));
  }

  fail(error: StatusError): void {
    this.end({ code: grpcCodeOf(error.code), message: error.message });
  }

  /** Undefined is OK. Later calls do nothing. */
  end(status: GrpcStatus | undefined): void {
    if (this.#isEnded) return;
    this.#markEnded();
    const isOnly = !this.#isHeadSent;
    if (status !== undefined) {
      const block = statusBlock(status, isOnly);
      if (isOnly) this.#stream.sendHeaderBlock(block, true);
      else this.#stream.sendTrailers(block);
      return;
    }
    if (isOnly) this.#stream.sendHeaderBlock(headBlock(this.encoding), false);
    this.#stream.sendTrailers(OK_TRAILERS);
  }

  lend(byteLength: number): LentBytes | undefined {
    // What follows the end is dropped, and nobody would count it back.
    if (this.#isEnded) return undefined;
    this.#largeBytes += byteLength;
    return largeMessages.begin(byteLength);
  }

  onData(data: Buffer): void {
    this.#received.push(data);
    this.#read();
  }

  onEnd(): void {
    this.#isEndReceived = true;
    this.#read();
  }

  onAbort(): void {
    if (this.#isEnded) return;
    this.#markEnded();
    this.cancellation.cancel();
  }

  onDrain(): void {
    if (!this.#isRoomWanted || this.#queuedBytes > 0) return;
    this.#isRoomWanted = false;
    this.#handler?.onRoom?.();
  }

  /** What the client has not taken, and what is still being packed for it. */
  get #queuedBytes(): number {
    return this.#stream.queuedBytes + this.#packingBytes;
  }

  get #isHeld(): boolean {
    return !this.#isEnded && (this.#isHolding || this.#unpacking !== undefined);
  }

  /** What was received, up to the end or until the call is held. A handler that lets go meanwhile is in here already. */
  #read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#received.length > 0 && !this.#isHeld) this.#readPiece(this.#received.shift()!);
    this.#isReading = false;
    if (!this.#isEndReceived || this.#received.length > 0 || this.#isHeld) return;
    this.#isEndReceived = false;
    if (!this.#isEnded) this.#handler!.onHalfClose();
  }

  #readPiece(piece: Buffer): void {
    this.#stream.consumed(piece.length);
    if (this.#isEnded) return;
    try {
      this.#reader.push(piece);
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  #markEnded(): void {
    this.#isEnded = true;
    largeMessages.end(this.#largeBytes);
    this.#largeBytes = 0;
    if (this.#deadline !== undefined) clearTimeout(this.#deadline);
  }

  #onMessage(message: ReceivedMessage): void {
    if (!message.isCompressed && this.#unpacking === undefined) {
      if (!this.#isEnded) this.#handler!.onMessage(message.pieces, message.byteLength, message.lease);
      return;
    }
    this.#afterUnpacking(async () => {
      if (this.#isEnded) return;
      const encoding = message.isCompressed ? (this.headers.encoding as GrpcEncoding) : 'identity';
      if (encoding === 'identity') {
        this.#handler!.onMessage(message.pieces, message.byteLength, message.lease);
        return;
      }
      const bytes = await unpack(message.pieces, encoding);
      if (!this.#isEnded) this.#handler!.onMessage([bytes], bytes.length, undefined);
    });
  }

  /** At once, unless an earlier message is still being unpacked. */
  #afterUnpacking(step: () => Promise<void> | void): void {
    const started = this.#unpacking === undefined ? step() : this.#unpacking.then(step);
    if (started === undefined) return;
    const tail: Promise<void> = started
      .catch((thrown: unknown) => this.#refuse(thrown))
      .then(() => {
        if (this.#unpacking !== tail) return;
        this.#unpacking = undefined;
        this.#read();
      });
    this.#unpacking = tail;
  }

  #afterPacking(step: () => Promise<void> | void): void {
    const started = this.#packing === undefined ? step() : this.#packing.then(step);
    if (started === undefined) return;
    const tail: Promise<void> = started
      .catch((thrown: unknown) => this.fail(StatusError.from(thrown)))
      .then(() => {
        if (this.#packing === tail) this.#packing = undefined;
      });
    this.#packing = tail;
  }

  /** A message that does not become smaller is sent as it is. */
  async #packAndSend(message: OutgoingMessage): Promise<void> {
    if (this.#isEnded) return;
    const [first, ...rest] = message.parts;
    const packed = await pack([first!.subarray(PREFIX_BYTES), ...rest], this.encoding as 'gzip' | 'deflate');
    this.#packingBytes -= message.byteLength;
    if (this.#isEnded) return;
    if (packed.length >= message.byteLength) this.#send(message, 0);
    else this.#send(outgoing(packed), 1);
    this.onDrain();
  }

  #send(message: OutgoingMessage, compressed: 0 | 1): void {
    if (!this.#isHeadSent) {
      this.#isHeadSent = true;
      this.#stream.sendHeaderBlock(headBlock(this.encoding), false);
    }
    writePrefix(message.parts[0]!, compressed, message.byteLength);
    this.#stream.sendData(message.parts);
  }

  #refuse(thrown: unknown): void {
    if (thrown instanceof MessageTooLarge) {
      this.end({ code: RESOURCE_EXHAUSTED_CODE, message: thrown.message });
    } else this.fail(StatusError.from(thrown));
    this.cancellation.cancel();
  }
}

function writePrefix(target: Buffer, compressed: 0 | 1, byteLength: number): void {
  target[0] = compressed;
  target.writeUInt32BE(byteLength, 1);
}

/** A message that was encoded without room for the prefix. */
export function outgoing(bytes: Buffer): OutgoingMessage {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
  bytes.copy(framed, PREFIX_BYTES);
  return { parts: [framed], byteLength: bytes.length };
}
