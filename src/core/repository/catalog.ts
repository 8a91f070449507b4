// Every model the server has heard of and the state of each version. Read on every request; written only by
// control.ts. A version is replaced in one step, so a request sees the old model or the new one, never neither.

import { invalidArgument, notFound, unavailable } from '../../domain/status.ts';
import type { ServedModel } from '../model/served-model.ts';

export type VersionState = 'UNKNOWN' | 'READY' | 'UNAVAILABLE' | 'LOADING' | 'UNLOADING';

export interface VersionRecord {
  readonly state: VersionState;
  /** Empty when there is nothing to say; `unloaded` after an unload. */
  readonly reason: string;
  readonly model: ServedModel | undefined;
}

export interface IndexRow {
  readonly name: string;
  /** Undefined for a model that was never loaded. */
  readonly version: number | undefined;
  readonly state: VersionState | undefined;
  readonly reason: string;
}

export const UNLOADED_REASON = 'unloaded';

/** -1 asks for the newest version. */
export const LATEST_VERSION = -1;

const NO_LABELS: ReadonlyMap<string, number> = new Map();

interface CatalogEntry {
  readonly versions: Map<number, VersionRecord>;
  /** The highest READY version; kept up to date so that the hot path is one look-up. */
  latest: ServedModel | undefined;
}

export class Catalog {
  readonly #entries = new Map<string, CatalogEntry>();

  /** The model that answers a request now; throws with Triton's words when there is none. */
  find(name: string, version: number): ServedModel {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw notFound(`Request for unknown model: '${name}' is not found`);
    if (version === LATEST_VERSION) {
      if (entry.latest !== undefined) return entry.latest;
      throw notFound(`Request for unknown model: '${name}' has no available versions`);
    }
    const record = entry.versions.get(version);
    if (record === undefined) {
      throw notFound(`Request for unknown model: '${name}' version ${version} is not found`);
    }
    if (record.state !== 'READY' || record.model === undefined) {
      throw unavailable(`Request for unknown model: '${name}' version ${version} is not at ready state`);
    }
    return record.model;
  }

  /** As `find`, but undefined when there is none: for callers that have another way to go. */
  findReady(name: string, version: number): ServedModel | undefined {
    const entry = this.#entries.get(name);
    if (version === LATEST_VERSION) return entry?.latest;
    const record = entry?.versions.get(version);
    return record?.state === 'READY' ? record.model : undefined;
  }

  /** Names that may stand for versions of this model, as the config of its newest version gives them. */
  labelsOf(name: string): ReadonlyMap<string, number> {
    const labels = this.#entries.get(name)?.latest?.config.version_labels;
    return labels === undefined ? NO_LABELS : new Map(Object.entries(labels));
  }

  /** The version a label stands for; undefined when the model has no labels at all, so that Triton's words fit. */
  findLabel(name: string, label: string): number | undefined {
    const labels = this.labelsOf(name);
    const version = labels.get(label);
    if (version !== undefined || labels.size === 0) return version;
    const known = [...labels.keys()].sort().map((known) => `'${known}'`);
    throw notFound(`model '${name}' has no version label '${label}'; its labels are ${known.join(', ')}`);
  }

  /** As the statistics endpoint looks models up: all READY versions, or the one asked for. */
  findForStatistics(name: string, version: number): ServedModel[] {
    const ready = this.readyVersions(name);
    if (ready.length === 0) throw invalidArgument(`requested model '${name}' is not available`);
    if (version === LATEST_VERSION) return ready;
    const wanted = ready.filter((model) => model.version === version);
    if (wanted.length === 0) {
      throw invalidArgument(`requested model version is not available for model '${name}'`);
    }
    return wanted;
  }

  /** READY versions, ascending. */
  readyVersions(name: string): ServedModel[] {
    const models: ServedModel[] = [];
    for (const record of this.#entries.get(name)?.versions.values() ?? []) {
      if (record.state === 'READY' && record.model !== undefined) models.push(record.model);
    }
    return models.sort((a, b) => a.version - b.version);
  }

  names(): string[] {
    return [...this.#entries.keys()].sort();
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  records(name: string): ReadonlyMap<number, VersionRecord> {
    return this.#entries.get(name)?.versions ?? new Map();
  }

  set(name: string, version: number, record: VersionRecord): void {
    const entry = this.ensure(name);
    entry.versions.set(version, record);
    this.#refresh(entry);
  }

  remove(name: string, version: number): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.versions.delete(version);
    this.#refresh(entry);
  }

  /** A model without any version yet; it makes a strict server not ready. */
  ensure(name: string): CatalogEntry {
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      entry = { versions: new Map(), latest: undefined };
      this.#entries.set(name, entry);
    }
    return entry;
  }

  /** True when every version of every model serves, or was unloaded on purpose. */
  isAllReady(): boolean {
    for (const entry of this.#entries.values()) {
      if (entry.versions.size === 0) return false;
      for (const record of entry.versions.values()) {
        const isReady = record.state === 'READY' && record.model?.isHealthy === true;
        const isGone = record.state === 'UNLOADING' || record.reason === UNLOADED_REASON;
        if (!isReady && !isGone) return false;
      }
    }
    return true;
  }

  /** Loaded models in any state, for the drain at exit. */
  models(): ServedModel[] {
    const models: ServedModel[] = [];
    for (const entry of this.#entries.values()) {
      for (const record of entry.versions.values()) if (record.model !== undefined) models.push(record.model);
    }
    return models;
  }

  #refresh(entry: CatalogEntry): void {
    let latest: ServedModel | undefined;
    for (const record of entry.versions.values()) {
      if (record.state !== 'READY' || record.model === undefined) continue;
      if (latest === undefined || record.model.version > latest.version) latest = record.model;
    }
    entry.latest = latest;
  }
}
