// A registered region and the memory behind it: a file for system regions, a part of a GPU for CUDA regions.
// shared-memory.ts keeps the regions, held-range.ts copies from and to them.

import type { TensorBytes } from '../../domain/tensor.ts';
import type { CudaRegionMemory } from './cuda-memory.ts';
import type { RegionFile } from './region-file.ts';

export interface Span {
  /** In the memory behind the region. */
  readonly position: number;
  readonly byteLength: number;
}

export interface RegionMemory {
  /** A copy of that size is synchronous. */
  isInline(byteLength: number): boolean;
  read(span: Span): TensorBytes | Promise<TensorBytes>;
  /** All of `data`, which is as long as the span. */
  write(span: Span, data: TensorBytes): void | Promise<void>;
  /** Never fails. */
  close(): void | Promise<void>;
}

export interface SystemRegionStatus {
  readonly name: string;
  /** As the client wrote it. */
  readonly key: string;
  readonly offset: number;
  readonly byteSize: number;
}

export interface CudaRegionStatus {
  readonly name: string;
  readonly deviceId: number;
  readonly byteSize: number;
}

interface RegionUse {
  /** Requests and copies under way. */
  useCount: number;
  isEnding: boolean;
}

export interface SystemRegion extends RegionUse {
  readonly kind: 'system';
  readonly status: SystemRegionStatus;
  readonly memory: RegionFile;
}

export interface CudaRegion extends RegionUse {
  readonly kind: 'cuda';
  readonly status: CudaRegionStatus;
  readonly memory: CudaRegionMemory;
}

/** One name space for both kinds, as in Triton. */
export type Region = SystemRegion | CudaRegion;
