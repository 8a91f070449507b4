// Parts of registered shared-memory regions, as a request names them. Wire code reads them from the request,
// core/shm checks and uses them.

export interface MemoryRange {
  readonly region: string;
  /** From the start of the region. A bigint when it is too large to be right. */
  readonly offset: number | bigint;
  readonly byteSize: number | bigint;
}

/** Where the tensors of one request lie that are not in the request itself. */
export interface RequestRanges {
  /** By the input's place in the request. */
  readonly inputs: ReadonlyMap<number, MemoryRange> | undefined;
  /** By the output's name. */
  readonly outputs: ReadonlyMap<string, MemoryRange> | undefined;
}
