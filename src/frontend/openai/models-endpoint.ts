// GET /v1/models and /v1/models/{id}: every text model that is ready, and each of its adapters under a name of its own.

import type { ServedModel } from '../../core/model/served-model.ts';
import type { Catalog } from '../../core/repository/catalog.ts';
import { epochSecs } from './api-call.ts';
import { modelNotFound } from './api-error.ts';
import { ADAPTER_SEPARATOR, adaptersOf, isTextModel } from './text-model.ts';

const OWNER = 'nereid';

/** When a loaded version was first listed; the core does not keep the time of a load. */
const seenSecs = new WeakMap<ServedModel, number>();

interface ModelDocument {
  readonly id: string;
}

export function modelList(catalog: Catalog): string {
  return JSON.stringify({ object: 'list', data: documents(catalog) });
}

/** `id` as it is in the path. */
export function modelById(catalog: Catalog, id: string): string {
  const name = decode(id);
  const found = documents(catalog).find((document) => document.id === name);
  if (found === undefined) throw modelNotFound(name);
  return JSON.stringify(found);
}

function decode(id: string): string {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

function documents(catalog: Catalog): ModelDocument[] {
  return catalog.names().flatMap((name) => {
    const model = catalog.readyVersions(name).at(-1);
    return model !== undefined && isTextModel(model) ? documentsOf(model) : [];
  });
}

function documentsOf(model: ServedModel): ModelDocument[] {
  const created = seenSecs.get(model) ?? epochSecs();
  seenSecs.set(model, created);
  const base = { object: 'model', created, owned_by: OWNER };
  const adapters = adaptersOf(model).map((adapter) => ({
    id: `${model.name}${ADAPTER_SEPARATOR}${adapter}`,
    ...base,
    parent: model.name,
  }));
  return [{ id: model.name, ...base }, ...adapters];
}
