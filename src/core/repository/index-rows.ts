// The repository index: every model that lies in a repository, with the state of its versions. Called by control.ts; pure.

import type { Catalog, IndexRow, VersionRecord } from './catalog.ts';
import type { RepositoryScan } from './scan.ts';

export function indexRows(scan: RepositoryScan, catalog: Catalog): IndexRow[] {
  return [...scan.keys()].sort().flatMap((name) => rowsOf(name, scan, catalog));
}

function rowsOf(name: string, scan: RepositoryScan, catalog: Catalog): IndexRow[] {
  if ((scan.get(name)?.length ?? 0) > 1) {
    const reason = 'model appears in two or more repositories';
    return [{ name, version: undefined, state: 'UNAVAILABLE', reason }];
  }
  if (!catalog.has(name)) return [{ name, version: undefined, state: undefined, reason: '' }];
  return [...catalog.records(name)]
    .sort(([a], [b]) => a - b)
    .map(([version, record]) => ({ name, version, ...shownState(record) }));
}

/** A model whose instances keep dying is loaded, and yet it serves nobody. */
function shownState(record: VersionRecord): Pick<IndexRow, 'state' | 'reason'> {
  const failure = record.state === 'READY' ? record.model?.failure : undefined;
  if (failure === undefined) return { state: record.state, reason: record.reason };
  return { state: 'UNAVAILABLE', reason: failure.describe() };
}
