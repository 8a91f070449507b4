// The versions of models in the catalog: starts those of one model, swaps them in, and lets the old ones end. What to
// load and when is control.ts's. A model that others are made of ends only after them.

import { invalidArgument, StatusError } from '../domain/status.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { loadServed } from './load-served.ts';
import type { LoadEnvironment } from './model/load-version.ts';
import type { ServedModel, UnloadOptions } from './model/served-model.ts';
import { type Catalog, UNLOADED_REASON } from './repository/catalog.ts';
import { needsOf } from './repository/dependencies.ts';
import type { FoundModel } from './repository/find-model.ts';

export interface ServedVersionsOptions {
  readonly catalog: Catalog;
  readonly environment: LoadEnvironment;
  readonly log: Logger;
  readonly loadConcurrency: number;
  readonly loadRetryCount: number;
}

export class ServedVersions {
  readonly #options: ServedVersionsOptions;
  readonly #catalog: Catalog;
  readonly #log: Logger;
  readonly #loadSlots: Semaphore;
  /** Models that take no new requests and have not ended. */
  readonly #retiring = new Set<ServedModel>();

  constructor(options: ServedVersionsOptions) {
    this.#options = options;
    this.#catalog = options.catalog;
    this.#log = options.log;
    this.#loadSlots = new Semaphore(options.loadConcurrency);
  }

  /** All versions or none; throws the reasons, and then what served before goes on serving. */
  async load(found: FoundModel, versions: readonly number[]): Promise<void> {
    const { name } = found.config;
    const results = await Promise.all(versions.map((version) => this.#tryVersion(found, version)));
    const failures = results.filter((result) => result instanceof StatusError);
    if (failures.length === 0) {
      this.#swap(name, results as ServedModel[]);
      return;
    }
    let text = '';
    for (let i = 0; i < versions.length; i++) {
      const version = versions[i]!;
      const result = results[i]!;
      const served = this.#catalog.records(name).get(version);
      const isServing = served?.state === 'READY';
      if (!(result instanceof StatusError)) {
        void result.unload();
        if (!isServing) this.#setUnavailable(name, version, UNLOADED_REASON);
        continue;
      }
      const reason = result.describe();
      text += `version ${version} is at UNAVAILABLE state: ${reason};\n`;
      this.#log.error(`failed to load '${name}' version ${version}: ${reason}`);
      if (!isServing) this.#setUnavailable(name, version, reason);
    }
    throw invalidArgument(text);
  }

  async #tryVersion(found: FoundModel, version: number): Promise<ServedModel | StatusError> {
    const { config, directory } = found;
    if (this.#catalog.records(config.name).get(version)?.state !== 'READY') {
      this.#catalog.set(config.name, version, { state: 'LOADING', reason: '', model: undefined });
    }
    return this.#loadSlots.run(async () => {
      for (let attempt = 0; ; attempt++) {
        this.#log.info(`loading: ${config.name}:${version}`);
        try {
          return await loadServed(
            { config, version, modelDirectory: directory.path },
            this.#options.environment,
          );
        } catch (thrown) {
          if (attempt >= this.#options.loadRetryCount) return StatusError.from(thrown);
        }
      }
    });
  }

  #setUnavailable(name: string, version: number, reason: string): void {
    this.#catalog.set(name, version, { state: 'UNAVAILABLE', reason, model: undefined });
  }

  /** From one moment to the next requests go to the new models; the old ones finish what they have. */
  #swap(name: string, models: readonly ServedModel[]): void {
    const before = new Map(this.#catalog.records(name));
    for (const model of models) {
      this.#catalog.set(name, model.version, { state: 'READY', reason: '', model });
    }
    for (const [version, record] of before) {
      if (record.model === undefined) {
        if (!models.some((model) => model.version === version)) this.#catalog.remove(name, version);
      } else if (models.some((model) => model.version === version)) void this.#retire(record.model);
      else this.#unloadVersion(record.model);
    }
  }

  /** Every version that serves; ensembles made of it must be unloaded first. */
  unload(name: string): void {
    for (const record of this.#catalog.records(name).values()) {
      if (record.model !== undefined && record.state === 'READY') this.#unloadVersion(record.model);
    }
  }

  #unloadVersion(model: ServedModel): void {
    const { name, version } = model;
    this.#catalog.set(name, version, { state: 'UNLOADING', reason: '', model });
    void this.#retire(model).then(() => {
      this.#log.info(`successfully unloaded '${name}' version ${version}`);
      // A load may have come in between; then the record is its business.
      if (this.#catalog.records(name).get(version)?.model !== model) return;
      this.#setUnavailable(name, version, UNLOADED_REASON);
    });
  }

  /** At exit: resolves when every model has ended; those made of others first, so that what is under way comes to its end. */
  async drainAll(): Promise<void> {
    const models = this.#catalog.models();
    for (const model of models) this.#retiring.add(model);
    await Promise.all(models.map((model) => this.#retire(model, { isServerExit: true })));
  }

  async #retire(model: ServedModel, options?: UnloadOptions): Promise<void> {
    this.#retiring.add(model);
    const users = [...this.#retiring].filter(
      (other) => other !== model && needsOf(other.config).includes(model.name),
    );
    // What is made of others is never made of itself, so this ends.
    await Promise.all(users.map((user) => this.#retire(user, options)));
    await model.unload(options);
    this.#retiring.delete(model);
  }
}
