// Model control: what the server loads at start, on a poll and when told to; the only writer of the catalog.
// Operations on one model happen one after another; a load builds the new beside the old and swaps on success.

import type { ModelConfig } from '../domain/model-config.ts';
import { invalidArgument, StatusError, unavailable } from '../domain/status.ts';
import type { Logger } from '../lib/logger.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { loadServed } from './load-served.ts';
import type { LoadEnvironment } from './model/load-version.ts';
import type { ServedModel } from './model/served-model.ts';
import { type Catalog, type IndexRow, UNLOADED_REASON, type VersionRecord } from './repository/catalog.ts';
import type { OverrideDirectory } from './repository/file-override.ts';
import {
  checkModelName,
  type FoundModel,
  findModel,
  isOverride,
  type LoadOverride,
  type RepositoryAccess,
} from './repository/find-model.ts';
import type { ConfigRules } from './repository/read-config.ts';
import { fingerprintOf, type RepositoryScan, scanRepositories, selectVersions } from './repository/scan.ts';

export interface ControlOptions {
  readonly paths: readonly string[];
  readonly mode: 'none' | 'poll' | 'explicit';
  readonly pollSecs: number;
  readonly loadModels: readonly string[];
  readonly loadConcurrency: number;
  readonly loadRetryCount: number;
  readonly rules: ConfigRules;
  readonly environment: LoadEnvironment;
  readonly catalog: Catalog;
  /** The `config` parameter of a load call is JSON; which JSON is the wire's matter. */
  parseConfigJson(text: string): ModelConfig;
}

/** What was loaded last, to tell whether there is anything new. */
interface Loaded {
  readonly fingerprint: string;
  readonly override: OverrideDirectory | undefined;
}

/** A model whose instances keep dying is loaded, and yet it serves nobody. */
function shownState(record: VersionRecord): Pick<IndexRow, 'state' | 'reason'> {
  const failure = record.state === 'READY' ? record.model?.failure : undefined;
  if (failure === undefined) return { state: record.state, reason: record.reason };
  return { state: 'UNAVAILABLE', reason: failure.describe() };
}

const NO_OVERRIDE: LoadOverride = { configJson: undefined, files: [] };

export class ModelControl {
  readonly #options: ControlOptions;
  readonly #catalog: Catalog;
  readonly #log: Logger;
  readonly #access: RepositoryAccess;
  readonly #loadSlots: Semaphore;
  readonly #queues = new Map<string, Promise<unknown>>();
  readonly #loaded = new Map<string, Loaded>();
  #pollTimer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#catalog = options.catalog;
    this.#log = options.environment.logger.child('model_lifecycle');
    this.#access = {
      paths: options.paths,
      rules: options.rules,
      logger: this.#log,
      parseConfigJson: options.parseConfigJson,
    };
    this.#loadSlots = new Semaphore(options.loadConcurrency);
  }

  /** Loads what the control mode says; false when any of it failed. */
  async start(): Promise<boolean> {
    const scan = await scanRepositories(this.#options.paths);
    const { mode, loadModels } = this.#options;
    const isAll = mode !== 'explicit' || loadModels.includes('*');
    const names = isAll ? [...scan.keys()] : loadModels;
    const results = await Promise.all(names.map((name) => this.#loadQuietly(name)));
    if (mode === 'poll' && this.#options.pollSecs > 0) this.#schedulePoll();
    return results.every((isLoaded) => isLoaded);
  }

  /** The load call of a client. Resolves when the model is ready. */
  async load(name: string, override: LoadOverride = NO_OVERRIDE): Promise<void> {
    this.#requireExplicit();
    checkModelName(name);
    await this.#inOrder(name, () => this.#load(name, override));
  }

  /** The unload call of a client. Resolves when the unload has begun. */
  async unload(name: string): Promise<void> {
    this.#requireExplicit();
    await this.#inOrder(name, async () => this.#unload(name));
  }

  async index(isReadyOnly: boolean): Promise<IndexRow[]> {
    const scan = await scanRepositories(this.#options.paths);
    const rows: IndexRow[] = [];
    for (const name of [...scan.keys()].sort()) rows.push(...this.#indexRows(name, scan));
    return isReadyOnly ? rows.filter((row) => row.state === 'READY') : rows;
  }

  /** No more loads and polls; what is loaded stays. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#pollTimer);
  }

  /** Removes directories that file overrides left. */
  async cleanUp(): Promise<void> {
    await Promise.all([...this.#loaded.values()].map((loaded) => loaded.override?.remove()));
  }

  #indexRows(name: string, scan: RepositoryScan): IndexRow[] {
    if ((scan.get(name)?.length ?? 0) > 1) {
      const reason = 'model appears in two or more repositories';
      return [{ name, version: undefined, state: 'UNAVAILABLE', reason }];
    }
    if (!this.#catalog.has(name)) return [{ name, version: undefined, state: undefined, reason: '' }];
    return [...this.#catalog.records(name)]
      .sort(([a], [b]) => a - b)
      .map(([version, record]) => ({ name, version, ...shownState(record) }));
  }

  #requireExplicit(): void {
    if (this.#options.mode === 'explicit') return;
    throw unavailable('explicit model load / unload is not allowed if polling is enabled');
  }

  #inOrder<T>(name: string, task: () => Promise<T>): Promise<T> {
    const before = this.#queues.get(name) ?? Promise.resolve();
    const result = before.then(task, task);
    const settled = result.then(
      () => {},
      () => {},
    );
    this.#queues.set(name, settled);
    void settled.then(() => {
      if (this.#queues.get(name) === settled) this.#queues.delete(name);
    });
    return result;
  }

  async #loadQuietly(name: string): Promise<boolean> {
    try {
      await this.#inOrder(name, () => this.#load(name, NO_OVERRIDE));
      return true;
    } catch {
      // #load has logged why.
      return false;
    }
  }

  async #load(name: string, override: LoadOverride): Promise<void> {
    if (this.#isStopped) throw unavailable('Server is stopping, no model is loaded any more');
    const found = await findModel(name, override, this.#access);
    if (!isOverride(override) && this.#isUnchanged(name, found.fingerprint)) return;
    const { selected, missing } = selectVersions(found.versions, found.config.version_policy);
    for (const version of missing) {
      this.#log.error(
        `version ${version} is specified for model '${name}', but the version directory is not present`,
      );
    }
    if (this.#options.mode !== 'explicit') {
      // A poll tries a failed model again only when its files change; a client that asks again wants the answer.
      this.#rememberPolled(name, found.fingerprint);
    }
    if (selected.length === 0) {
      this.#catalog.ensure(name);
      const reason = `at least one version must be available under the version policy of model '${name}'`;
      this.#log.error(`failed to load '${name}': ${reason}`);
      throw invalidArgument(`load failed for model '${name}': ${reason}\n`);
    }
    const models = await this.#loadVersions(found, selected);
    this.#swap(name, models);
    const old = this.#loaded.get(name)?.override;
    const { fingerprint, override: directory } = found;
    this.#loaded.set(name, { fingerprint, override: directory });
    if (old !== directory) void old?.remove();
    this.#log.info(`successfully loaded '${name}'`);
  }

  #isUnchanged(name: string, fingerprint: string): boolean {
    if (this.#loaded.get(name)?.fingerprint !== fingerprint) return false;
    const records = [...this.#catalog.records(name).values()];
    return records.some((record) => record.state === 'READY');
  }

  /** All versions or none; on failure what served before goes on serving. */
  async #loadVersions(found: FoundModel, versions: readonly number[]): Promise<ServedModel[]> {
    const name = found.config.name;
    const results = await Promise.all(versions.map((version) => this.#tryVersion(found, version)));
    const failures = results.filter((result) => result instanceof StatusError);
    if (failures.length === 0) return results as ServedModel[];
    let text = '';
    for (let i = 0; i < versions.length; i++) {
      const version = versions[i]!;
      const result = results[i]!;
      const served = this.#catalog.records(name).get(version);
      const isServing = served?.state === 'READY';
      if (!(result instanceof StatusError)) {
        void result.unload();
        if (!isServing) {
          this.#catalog.set(name, version, {
            state: 'UNAVAILABLE',
            reason: UNLOADED_REASON,
            model: undefined,
          });
        }
        continue;
      }
      const reason = result.describe();
      text += `version ${version} is at UNAVAILABLE state: ${reason};\n`;
      this.#log.error(`failed to load '${name}' version ${version}: ${reason}`);
      if (!isServing) this.#catalog.set(name, version, { state: 'UNAVAILABLE', reason, model: undefined });
    }
    void found.override?.remove();
    throw invalidArgument(`load failed for model '${name}': ${text}`);
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

  /** From one moment to the next requests go to the new models; the old ones finish what they have. */
  #swap(name: string, models: readonly ServedModel[]): void {
    const before = new Map(this.#catalog.records(name));
    for (const model of models) {
      this.#catalog.set(name, model.version, { state: 'READY', reason: '', model });
    }
    for (const [version, record] of before) {
      if (record.model === undefined) {
        if (!models.some((model) => model.version === version)) this.#catalog.remove(name, version);
      } else if (models.some((model) => model.version === version)) void record.model.unload();
      else this.#unloadVersion(record.model);
    }
  }

  #unload(name: string): void {
    for (const record of this.#catalog.records(name).values()) {
      if (record.model !== undefined && record.state === 'READY') this.#unloadVersion(record.model);
    }
    const loaded = this.#loaded.get(name);
    this.#loaded.delete(name);
    void loaded?.override?.remove();
  }

  #unloadVersion(model: ServedModel): void {
    const { name, version } = model;
    this.#catalog.set(name, version, { state: 'UNLOADING', reason: '', model });
    void model.unload().then(() => {
      this.#log.info(`successfully unloaded '${name}' version ${version}`);
      // A load may have come in between; then the record is its business.
      if (this.#catalog.records(name).get(version)?.model !== model) return;
      this.#catalog.set(name, version, { state: 'UNAVAILABLE', reason: UNLOADED_REASON, model: undefined });
    });
  }

  #schedulePoll(): void {
    this.#pollTimer = setTimeout(() => {
      void this.#pollOnce().finally(() => {
        if (!this.#isStopped) this.#schedulePoll();
      });
    }, this.#options.pollSecs * 1000);
  }

  async #pollOnce(): Promise<void> {
    const scan = await scanRepositories(this.#options.paths);
    const tasks: Promise<unknown>[] = [];
    for (const [name, directories] of scan) {
      const fingerprint = await fingerprintOf(directories[0]!.path);
      if (this.#loaded.get(name)?.fingerprint === fingerprint) continue;
      tasks.push(this.#loadQuietly(name).then(() => this.#rememberPolled(name, fingerprint)));
    }
    for (const name of this.#catalog.names()) {
      if (!scan.has(name) && this.#loaded.has(name)) {
        tasks.push(this.#inOrder(name, async () => this.#unload(name)));
      }
    }
    await Promise.all(tasks);
  }

  /** A model that could not be read is tried again only when its files change. */
  #rememberPolled(name: string, fingerprint: string): void {
    this.#loaded.set(name, { fingerprint, override: this.#loaded.get(name)?.override });
  }
}
