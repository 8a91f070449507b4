// The model repositories of the corpus: copies in a temporary directory, because Python leaves its caches beside a
// model; and which models of them need Python, because a machine may have none.
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { inRoot } from '../support/paths.ts';
import { createRepository } from '../support/repository.ts';
import { type Case, requestsOf, type ServerName } from './cases.ts';

/** Error texts name these folders, so the copies keep their names. */
const FOLDERS: Readonly<Record<ServerName, string>> = { main: 'models', explicit: 'models_explicit' };

export interface CorpusRepositories {
  path(server: ServerName): string;
  readonly modelsHeld: Readonly<Record<ServerName, ReadonlySet<string>>>;
  remove(): void;
}

export function copyRepositories({ isPython }: { readonly isPython: boolean }): CorpusRepositories {
  const copy = createRepository();
  const held = (server: ServerName) =>
    modelsOf(server).filter((model) => isPython || !needsPython(server, model));
  const modelsHeld = { main: new Set(held('main')), explicit: new Set(held('explicit')) };
  for (const server of ['main', 'explicit'] as const) {
    for (const model of modelsHeld[server]) {
      cpSync(sourceOf(server, model), copy.at(FOLDERS[server], model), { recursive: true });
    }
  }
  return { modelsHeld, path: (server) => copy.at(FOLDERS[server]), remove: copy.remove };
}

/** Whether a step of the case names a model of the Python backend. */
export function isPythonCase(one: Case): boolean {
  const text = JSON.stringify(requestsOf(one));
  return modelsOf(one.server).some(
    (model) => needsPython(one.server, model) && new RegExp(`\\b${model}\\b`).test(text),
  );
}

function modelsOf(server: ServerName): string[] {
  return readdirSync(inRoot('test', 'conformance', FOLDERS[server]));
}

function sourceOf(server: ServerName, model: string): string {
  return inRoot('test', 'conformance', FOLDERS[server], model);
}

/** Ensembles need it when a model of their steps does; ensembles that need each other are asked once. */
function needsPython(server: ServerName, model: string, asked: ReadonlySet<string> = new Set()): boolean {
  if (asked.has(model) || !existsSync(sourceOf(server, model))) return false;
  const files = readdirSync(sourceOf(server, model), { recursive: true, encoding: 'utf8' });
  if (files.some((file) => basename(file) === 'model.py')) return true;
  if (!files.includes('config.pbtxt')) return false;
  const config = readFileSync(`${sourceOf(server, model)}/config.pbtxt`, 'utf8');
  const steps = [...config.matchAll(/model_name: "([^"]+)"/g)].map(([, step]) => step!);
  return steps.some((step) => needsPython(server, step, new Set([...asked, model])));
}
