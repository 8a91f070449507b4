// What the catalog holds for one version of a model and what every request is given to: a model with instances (model.ts),
// an ensemble of other models, or a router between them. All of them are loaded, found, counted and unloaded alike.

import type { ModelConfig } from '../../domain/model-config.ts';
import type { ModelView } from '../../domain/model-view.ts';
import type { StatusError } from '../../domain/status.ts';
import type { InferCall } from '../infer.ts';
import type { ModelStats } from '../stats/model-stats.ts';

export interface UnloadOptions {
  /** The server exits and its clients still reach the model: sequences that have begun may come to their end. */
  readonly isServerExit: boolean;
}

export interface ServedModel extends ModelView {
  readonly config: ModelConfig;
  readonly stats: ModelStats;
  /** True while requests can be served. */
  readonly isHealthy: boolean;
  /** Asks the model itself whether it is ready, where it has an opinion; undefined where it has none. */
  askReady?(): Promise<boolean> | undefined;
  /** Why it serves nobody and will not soon; undefined when it does, or may again in a moment. */
  readonly failure: StatusError | undefined;
  /** Requests not yet answered. */
  readonly openCount: number;
  /** Headers, or metadata keys, in lower case, that it wants to see with each request; undefined for most models. */
  readonly wantedHeaders?: readonly string[] | undefined;
  /** A load call loads it again even when no file has changed. */
  readonly isReloadWanted?: boolean;
  /** Throws when the request is refused; otherwise the sink gets the answer. */
  infer(call: InferCall): void;
  /** Refuses new requests; resolves when every accepted one has been answered and all is ended. May be asked for twice. */
  unload(options?: UnloadOptions): Promise<void>;
  /** For a server that must exit now: answers all that is open with the error. */
  abandon(error: StatusError): void;
}

/** Whether requests can be served, the model's own opinion included. */
export function isReadyNow(model: ServedModel): boolean | Promise<boolean> {
  return model.isHealthy && (model.askReady?.() ?? true);
}
