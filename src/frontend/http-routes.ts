// What lies between an HTTP listener (http/) and paths that another folder serves on it (openai/): the folders do not know each
// other, server.ts hands the routes of one to the other. Types only; the listener's own exchange fits them.

import type { Cancellation } from '../lib/cancellation.ts';

export interface RoutedAnswerHead {
  readonly status: number;
  readonly type: string;
  /** Further header lines, each with its line end. */
  readonly headers?: string;
}

export interface RoutedAnswer extends RoutedAnswerHead {
  readonly parts: readonly Buffer[];
  readonly byteLength: number;
}

/** An answer written piece by piece; see HttpStreamWriter. */
export interface RoutedWriter {
  /** False: the client is behind, `onDrain` is called when it has caught up or gone. */
  write(bytes: Buffer): boolean;
  end(bytes?: Buffer): void;
  onDrain: (() => void) | undefined;
}

export interface RoutedCall {
  readonly method: string;
  /** As UTF-8, not decoded, without the query. */
  readonly path: string;
  /** -1: chunked. */
  readonly bodyLength: number;
  /** Cancelled when the client goes away before the answer. */
  readonly cancellation: Cancellation;
  /** `name` in lower case. */
  header(name: string): string | undefined;
  /** Once; what is said later, or after the client has gone, is dropped. */
  respond(answer: RoutedAnswer): void;
  /** In place of `respond`. */
  begin(head: RoutedAnswerHead): RoutedWriter;
}

export interface RoutePlan {
  readonly isBodyKept: boolean;
  /** A longer body is read and dropped; `onBody` sees its length. */
  readonly bodyBytesMax?: number | undefined;
  onBody(body: { readonly pieces: readonly Buffer[]; readonly byteLength: number }): void;
}

export interface HttpRoutes {
  /** Called with the head alone. Undefined: the path is none of these. */
  begin(call: RoutedCall): RoutePlan | undefined;
}
