// Token pieces are bytes, and a character may be cut between two of them. This gives out whole characters only.
// The engine makes one per choice of a request, before the stop strings.

export class Utf8Assembler {
  /** A byte order mark is text like any other here, so it is kept. */
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  /** The characters that are complete with these bytes. Bytes that are no UTF-8 become U+FFFD. */
  push(bytes: Uint8Array): string {
    return this.#decoder.decode(bytes, { stream: true });
  }

  /** The end: an incomplete character becomes U+FFFD. The assembler can be used again. */
  flush(): string {
    return this.#decoder.decode();
  }
}
