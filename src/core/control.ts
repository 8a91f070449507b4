// Model control: what the server loads at start, on a poll and when told to; with served-versions.ts
// the only writer of the catalog.
// Operations on one model happen one after another; a load builds the new beside the old and swaps on success. What an
// ensemble is made of is loaded before it, checked again when it changes, and unloaded after it.

import type { ModelConfig } from '../domain/model-config.ts';
import { invalidArgument, StatusError, unavailable } from '../domain/status.ts';
import type { Logger } from '../lib/logger.ts';
import { checkEnsemble, isEnsemble } from './ensemble/load-ensemble.ts';
import type { LoadEnvironment } from './model/load-version.ts';
import type { Catalog, IndexRow } from './repository/catalog.ts';
import { circularDependency, type LoadFailure, needsOf } from './repository/dependencies.ts';
import {
  checkModelName,
  type FoundModel,
  findModel,
  isOverride,
  type LoadOverride,
  NO_OVERRIDE,
  type RepositoryAccess,
} from './repository/find-model.ts';
import { indexRows } from './repository/index-rows.ts';
import { beginRound, type LoadRound, readAllNeeds } from './repository/load-round.ts';
import type { ConfigRules } from './repository/read-config.ts';
import { fingerprintOf, scanRepositories, selectVersions } from './repository/scan.ts';
import { ServedVersions } from './served-versions.ts';
import { Turns } from './turns.ts';

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
  /** Undefined when it could only be looked at. */
  readonly found: FoundModel | undefined;
}

export class ModelControl {
  readonly #options: ControlOptions;
  readonly #catalog: Catalog;
  readonly #log: Logger;
  readonly #access: RepositoryAccess;
  readonly #versions: ServedVersions;
  readonly #turns = new Turns();
  readonly #loaded = new Map<string, Loaded>();
  /** Loaded because somebody asked for it, not because an ensemble needs it. */
  readonly #wanted = new Set<string>();
  /** Ensembles that would be served if what they need were: tried again when it is loaded. */
  readonly #waiting = new Map<string, readonly string[]>();
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
    this.#versions = new ServedVersions({ ...options, log: this.#log });
  }

  /** Loads what the control mode says; false when any of it failed. */
  async start(): Promise<boolean> {
    const round = await beginRound(this.#access);
    const { mode, loadModels } = this.#options;
    const isAll = mode !== 'explicit' || loadModels.includes('*');
    const names = isAll ? [...round.scan.keys()] : loadModels;
    const isAllLoaded = await this.#loadAll(names, round);
    if (mode === 'poll' && this.#options.pollSecs > 0) this.#schedulePoll();
    return isAllLoaded;
  }

  /** The load call of a client. Resolves when the model is ready. */
  async load(name: string, override: LoadOverride = NO_OVERRIDE): Promise<void> {
    this.#requireExplicit();
    checkModelName(name);
    const round = await beginRound(this.#access);
    await readAllNeeds(name, override, { round, access: this.#access });
    const error = await this.#loadOnce(name, override, round);
    if (error === undefined) this.#wanted.add(name);
    await this.#refreshUsers(round);
    if (error !== undefined) throw error;
  }

  /**
   * The unload call of a client. Resolves when the unload has begun. Ensembles made of the model go first; with
   * `isDependents` what was loaded only for it goes, too.
   */
  async unload(name: string, isDependents = false): Promise<void> {
    this.#requireExplicit();
    const needs = this.#needsServed(name);
    await this.#unloadWithUsers(name);
    this.#wanted.delete(name);
    this.#waiting.delete(name);
    if (!isDependents) return;
    for (const need of needs) {
      if (!this.#wanted.has(need) && this.#usersOf([need]).length === 0) await this.unload(need, true);
    }
  }

  async index(isReadyOnly: boolean): Promise<IndexRow[]> {
    const rows = indexRows(await scanRepositories(this.#options.paths), this.#catalog);
    return isReadyOnly ? rows.filter((row) => row.state === 'READY') : rows;
  }

  /** No more loads and polls; what is loaded stays. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#pollTimer);
  }

  /** At exit: resolves when every accepted request has been answered and every model has ended. */
  drain(): Promise<void> {
    return this.#versions.drainAll();
  }

  /** Removes directories that file overrides left. */
  async cleanUp(): Promise<void> {
    await Promise.all([...this.#loaded.values()].map(({ found }) => found?.override?.remove()));
  }

  #requireExplicit(): void {
    if (this.#options.mode === 'explicit') return;
    throw unavailable('explicit model load / unload is not allowed if polling is enabled');
  }

  /** Models that do not need each other are loaded side by side; false when any failed. */
  async #loadAll(names: readonly string[], round: LoadRound): Promise<boolean> {
    for (const name of names) this.#wanted.add(name);
    const reading = { round, access: this.#access };
    await Promise.all(names.map((name) => readAllNeeds(name, NO_OVERRIDE, reading)));
    const errors = await Promise.all(names.map((name) => this.#loadOnce(name, NO_OVERRIDE, round)));
    await this.#refreshUsers(round);
    return errors.every((error) => error === undefined);
  }

  #loadOnce(name: string, override: LoadOverride, round: LoadRound): Promise<StatusError | undefined> {
    const result = round.results.get(name) ?? this.#loadAfterNeeds(name, override, round);
    round.results.set(name, result);
    return result;
  }

  /** What it needs has its turn before it takes its own: no load waits for another while others wait for it. */
  async #loadAfterNeeds(
    name: string,
    override: LoadOverride,
    round: LoadRound,
  ): Promise<StatusError | undefined> {
    const needs = round.needs.get(name) ?? [];
    try {
      const circle = circularDependency(name, round.needs);
      if (circle !== undefined) throw this.#invalid(name, circle, round);
      await Promise.all(needs.map((need) => this.#loadOnce(need, NO_OVERRIDE, round)));
      await this.#turns.take(name, () => this.#load(name, override, round));
      return undefined;
    } catch (thrown) {
      // What served before was made of models that are others now.
      const isStale = needs.some((need) => round.changed.has(need));
      if (isStale && round.failures.get(name)?.kind === 'invalid') await this.#unloadWithUsers(name);
      return StatusError.from(thrown);
    }
  }

  /** Of an ensemble that cannot be. */
  #invalid(name: string, thrown: unknown, round: LoadRound): StatusError {
    const reason = StatusError.from(thrown).message;
    this.#log.error(`failed to load '${name}': ${reason}`);
    return this.#failed(name, { kind: 'invalid', reason }, round);
  }

  /** Keeps the reason for ensembles that need the model, and makes the error that a client gets. */
  #failed(name: string, failure: LoadFailure, round: LoadRound): StatusError {
    round.failures.set(name, failure);
    return invalidArgument(`load failed for model '${name}': ${failure.reason}\n`);
  }

  async #load(name: string, override: LoadOverride, round: LoadRound): Promise<void> {
    if (this.#isStopped) throw unavailable('Server is stopping, no model is loaded any more');
    const found = await this.#find(name, override, round);
    const needs = needsOf(found.config);
    const isNew = isOverride(override) || needs.some((need) => round.changed.has(need));
    if (!isNew && this.#isUnchanged(name, found.fingerprint)) return;
    const { selected, missing } = selectVersions(found.versions, found.config.version_policy);
    for (const version of missing) {
      this.#log.error(
        `version ${version} is specified for model '${name}', but the version directory is not present`,
      );
    }
    if (this.#options.mode !== 'explicit') {
      // A poll tries a failed model again only when its files, or what it needs, change; a client wants the answer.
      this.#rememberPolled(name, found.fingerprint);
      if (needs.length > 0) this.#waiting.set(name, needs);
    }
    if (selected.length === 0) {
      this.#catalog.ensure(name);
      const reason = `at least one version must be available under the version policy of model '${name}'`;
      this.#log.error(`failed to load '${name}': ${reason}`);
      throw this.#failed(name, { kind: 'failed', reason }, round);
    }
    await this.#serve(found, selected, round);
  }

  async #find(name: string, override: LoadOverride, round: LoadRound): Promise<FoundModel> {
    try {
      return await findModel(name, override, this.#access);
    } catch (thrown) {
      const error = StatusError.from(thrown);
      round.failures.set(name, { kind: 'missing', reason: error.message });
      throw error;
    }
  }

  /** Makes the versions the ones that serve; when it throws, what served before goes on. */
  async #serve(found: FoundModel, versions: readonly number[], round: LoadRound): Promise<void> {
    const { name } = found.config;
    try {
      if (isEnsemble(found.config)) checkEnsemble(found.config, this.#catalog, round.failures);
    } catch (thrown) {
      throw this.#invalid(name, thrown, round);
    }
    try {
      await this.#versions.load(found, versions);
    } catch (thrown) {
      if (this.#loaded.get(name)?.found !== found) void found.override?.remove();
      const reason = StatusError.from(thrown).message.replace(/\n$/, '');
      throw this.#failed(name, { kind: 'failed', reason }, round);
    }
    const old = this.#loaded.get(name)?.found?.override;
    this.#loaded.set(name, { fingerprint: found.fingerprint, found });
    if (old !== found.override) void old?.remove();
    this.#waiting.delete(name);
    round.changed.add(name);
    this.#log.info(`successfully loaded '${name}'`);
  }

  #isUnchanged(name: string, fingerprint: string): boolean {
    if (this.#loaded.get(name)?.fingerprint !== fingerprint) return false;
    const records = [...this.#catalog.records(name).values()];
    return records.some(({ state, model }) => state === 'READY' && model?.isReloadWanted !== true);
  }

  /** Ensembles made of what has changed are made anew; those that cannot be any more are unloaded. */
  async #refreshUsers(round: LoadRound): Promise<void> {
    let changed = [...round.changed];
    while (changed.length > 0) {
      const waiting = [...this.#waiting].filter(([, needs]) => needs.some((need) => changed.includes(need)));
      const users = new Set([...this.#usersOf(changed), ...waiting.map(([name]) => name)]);
      const stale = [...users].filter((name) => !round.results.has(name));
      await Promise.all(stale.map((name) => this.#refresh(name, round)));
      changed = stale;
    }
  }

  async #refresh(name: string, round: LoadRound): Promise<void> {
    try {
      await this.#turns.take(name, async () => {
        const found = this.#loaded.get(name)?.found;
        const served = this.#catalog.readyVersions(name).map(({ version }) => version);
        if (found === undefined || served.length === 0) await this.#load(name, NO_OVERRIDE, round);
        else await this.#serve(found, served, round);
      });
    } catch {
      // The reason has been logged.
      await this.#unloadWithUsers(name);
    }
  }

  /** Names of ensembles that serve and are made of any of the models. */
  #usersOf(names: readonly string[]): string[] {
    const isUser = (name: string) => this.#needsServed(name).some((need) => names.includes(need));
    return this.#catalog.names().filter(isUser);
  }

  #needsServed(name: string): readonly string[] {
    return this.#catalog.readyVersions(name).flatMap(({ config }) => needsOf(config));
  }

  /** The ensembles wait to be loaded with it again. */
  async #unloadWithUsers(name: string): Promise<void> {
    for (const user of this.#usersOf([name])) await this.#unloadWithUsers(user);
    await this.#turns.take(name, async () => {
      const needs = this.#needsServed(name);
      if (needs.length > 0) this.#waiting.set(name, needs);
      this.#versions.unload(name);
      const loaded = this.#loaded.get(name);
      this.#loaded.delete(name);
      void loaded?.found?.override?.remove();
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
    const round = await beginRound(this.#access);
    for (const name of this.#catalog.names()) {
      if (!round.scan.has(name) && this.#loaded.has(name)) {
        await this.#unloadWithUsers(name);
        this.#waiting.delete(name);
      }
    }
    const changed = new Map<string, string>();
    for (const [name, directories] of round.scan) {
      const fingerprint = await fingerprintOf(directories[0]!.path);
      if (this.#loaded.get(name)?.fingerprint !== fingerprint) changed.set(name, fingerprint);
    }
    await this.#loadAll([...changed.keys()], round);
    for (const [name, fingerprint] of changed) this.#rememberPolled(name, fingerprint);
  }

  /** A model that could not be read is tried again only when its files change. */
  #rememberPolled(name: string, fingerprint: string): void {
    this.#loaded.set(name, { fingerprint, found: this.#loaded.get(name)?.found });
  }
}
