// What the HTTP frontend needs of the server behind it. server.ts puts it together; endpoints only read it.

import type { Catalog, IndexRow } from '../../core/repository/catalog.ts';
import type { LoadOverride } from '../../core/repository/find-model.ts';
import type { InferRequest, ResponseSink } from '../../domain/request.ts';
import type { Cancellation } from '../../lib/cancellation.ts';
import type { Logger } from '../../lib/logger.ts';

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

export interface HttpServices {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly serverId: string;
  readonly headerForwardPattern: RegExp | undefined;
  readonly inputBytesMax: number;
  readonly restrictedApis: ReadonlyMap<RestrictedCategory, { header: string; value: string }>;
  /** Throws when the request is refused; otherwise the sink is answered. */
  infer(
    target: { model: string; version: number },
    request: InferRequest,
    sink: ResponseSink,
    cancellation: Cancellation,
  ): void;
  /** Throws UNAVAILABLE while the server is exiting. */
  isLive(): boolean;
  isReady(): boolean;
  index(isReadyOnly: boolean): Promise<readonly IndexRow[]>;
  load(model: string, override: LoadOverride): Promise<void>;
  unload(model: string): Promise<void>;
}
