// What the frontends need of the server behind them. server.ts puts it together; endpoints only read it.

import type { InferCall, InferTarget } from '../core/infer.ts';
import type { Catalog, IndexRow } from '../core/repository/catalog.ts';
import type { LoadOverride } from '../core/repository/find-model.ts';
import type { SharedMemory } from '../core/shm/shared-memory.ts';
import type { TraceControl } from '../core/trace/trace-control.ts';
import type { Logger } from '../lib/logger.ts';
import type { JsonThread } from './json-thread.ts';

/** The Triton release whose clients and behaviour this server follows. */
export const TRITON_VERSION = '2.51.0';

/** In Triton's order. */
export const EXTENSIONS: readonly string[] = [
  'classification',
  'sequence',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'system_shared_memory',
  'cuda_shared_memory',
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
];

export type RestrictedCategory =
  | 'health'
  | 'metadata'
  | 'inference'
  | 'shared-memory'
  | 'model-config'
  | 'model-repository'
  | 'statistics'
  | 'trace'
  | 'logging';

/** The header, or metadata key, that a request to a restricted category must carry. */
export type RestrictedApis = ReadonlyMap<RestrictedCategory, { header: string; value: string }>;

export interface ServerServices {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly serverId: string;
  readonly sharedMemory: SharedMemory;
  readonly trace: TraceControl;
  /** For JSON that is too large for the event loop. */
  readonly jsonThread: JsonThread;
  /** Throws when the request is refused; otherwise the sink is answered. */
  infer(target: InferTarget, call: InferCall): void;
  /** Throws UNAVAILABLE while the server is exiting. */
  isLive(): boolean;
  isReady(): boolean;
  index(isReadyOnly: boolean): Promise<readonly IndexRow[]>;
  load(model: string, override: LoadOverride): Promise<void>;
  /** `isDependents`: also what was loaded only because the model needs it. */
  unload(model: string, isDependents: boolean): Promise<void>;
}
