// The contexts of one model instance: what initialize and execute get as `context`. Everything in it is made once but for
// the two functions that must know for which request they call.

import type {
  InferOptions,
  InferResult,
  ModelContext,
  ModelLog,
} from '../../backend/model-sdk/model-context.ts';
import { ModelError } from '../../backend/model-sdk/model-error.ts';
import type { LoadContext } from '../../backend/sdk.ts';
import type { ServerCalls } from '../../backend/server-calls.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import { callModel, streamModel } from './call-model.ts';
import { MetricsClient } from './metrics-client.ts';
import { ModelRequest, type RequestPlace } from './model-request.ts';

type Base = Omit<ModelContext, 'infer' | 'stream'>;

export class ModelHandle {
  readonly #load: LoadContext;
  readonly #calls: ServerCalls | undefined;
  readonly #base: Base;

  constructor(load: LoadContext, config: ModelConfig, calls: ServerCalls | undefined) {
    this.#load = load;
    this.#calls = calls;
    this.#base = this.#makeBase(config);
  }

  /** For initialize without requests, for execute with those of the batch. */
  contextOf(requests: readonly ModelRequest[]): ModelContext {
    const only = requests.length === 1 ? requests[0] : undefined;
    const parentOf = (options: InferOptions): RequestPlace | undefined =>
      options.request instanceof ModelRequest ? options.request.place : only?.place;
    return {
      ...this.#base,
      infer: async (model, options): Promise<InferResult> =>
        callModel(this.#server, { model, options, parent: parentOf(options) }),
      stream: (model, options) => streamModel(this.#server, { model, options, parent: parentOf(options) }),
    };
  }

  logFailure(where: string, thrown: unknown): void {
    const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    this.#load.log('error', `${where} failed: ${text}`);
  }

  get #server(): ServerCalls {
    if (this.#calls === undefined) throw new ModelError('UNAVAILABLE', 'there is no server to call');
    return this.#calls;
  }

  #makeBase(config: ModelConfig): Base {
    const load = this.#load;
    const parameters = Object.entries(config.parameters).map(([name, value]) => [name, value.string_value]);
    return {
      modelName: load.modelName,
      version: load.version,
      modelDirectory: load.modelDirectory,
      versionDirectory: load.versionDirectory,
      instanceName: load.placement.name,
      config,
      parameters: Object.fromEntries(parameters) as Record<string, string>,
      log: makeLog(load),
      metrics: new MetricsClient(this.#calls, (message) => load.log('warning', message)),
      loadModel: (model, options = {}) => {
        const config =
          typeof options.config === 'object' ? JSON.stringify(options.config) : (options.config ?? '');
        const files = Object.entries(options.files ?? {}).map(([path, content]) => ({
          path,
          content: Buffer.from(content.buffer, content.byteOffset, content.byteLength),
        }));
        return asModelError(() => this.#server.load(model, { config, files }));
      },
      unloadModel: (model) => asModelError(() => this.#server.unload(model)),
      isModelReady: (model, version) =>
        asModelError(() => this.#server.isReady(model, version === undefined ? '' : String(version))),
    };
  }
}

async function asModelError<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (thrown) {
    const { code, message } = StatusError.from(thrown);
    throw new ModelError(code, message);
  }
}

function makeLog(load: LoadContext): ModelLog {
  return {
    error: (message) => load.log('error', message),
    warn: (message) => load.log('warning', message),
    info: (message) => load.log('info', message),
    verbose: (message) => load.log('verbose', message),
  };
}
