// Imports a model file, ES module or CommonJS, and checks what it exports. `nereid/model` is made to resolve first.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import Module from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ModelDefinition } from '../../backend/model-sdk/define-model.ts';
import * as sdk from '../../backend/model-sdk/index.ts';
import { internal, type StatusError } from '../../domain/status.ts';
import { resolve } from './resolve-hook.ts';

/** What Node has and its types of our oldest version do not. */
interface ModuleLoader {
  /** Every `require` comes through here. */
  _load(request: string, ...rest: unknown[]): unknown;
  /** Since 22.15; before, hooks run on a thread. */
  registerHooks?(hooks: { resolve: typeof resolve }): void;
}

/** A check that takes longer is not worth the wait: the message is known already. */
const CHECK_MS_MAX = 5_000;

let isRegistered = false;

export async function importModel(path: string): Promise<ModelDefinition> {
  registerSdk();
  let exported: Readonly<Record<string, unknown>>;
  try {
    exported = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  } catch (thrown) {
    throw internal(`failed to load '${path}': ${importErrorText(thrown, path)}`);
  }
  return checkDefinition(exported, path);
}

function registerSdk(): void {
  if (isRegistered) return;
  isRegistered = true;
  const loader = Module as unknown as ModuleLoader;
  const load = loader._load.bind(loader);
  // Node before 22.12 cannot require an ES module; this one is here already.
  loader._load = (request, ...rest) => (request === 'nereid/model' ? sdk : load(request, ...rest));
  if (loader.registerHooks !== undefined) loader.registerHooks({ resolve });
  else Module.register(new URL('./resolve-hook.js', import.meta.url));
}

/** `SyntaxError: Unexpected token ';' (model.js:3)` */
function importErrorText(thrown: unknown, path: string): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const place = thrown instanceof SyntaxError ? syntaxPlace(thrown, path) : throwingPlace(thrown);
  return `${thrown.name}: ${thrown.message}${place === undefined ? '' : ` (${place})`}`;
}

/** The line of the model that threw while it was loaded. */
function throwingPlace(error: Error): string | undefined {
  return /\n\s+at (?:.*\()?(?:file:\/\/)?\/\S*?([^/\\\s]+:\d+):\d+\)?/.exec(error.stack ?? '')?.[1];
}

/** CommonJS has the place at the top of the stack. For an ES module only a check by another Node tells it. */
function syntaxPlace(error: SyntaxError, path: string): string | undefined {
  const known = /^\S*?([^/\\\s]+:\d+)\n/.exec(error.stack ?? '')?.[1];
  if (known !== undefined) return known;
  const { stderr } = spawnSync(process.execPath, ['--check', '--input-type=module'], {
    input: readFileSync(path),
    encoding: 'utf8',
    timeout: CHECK_MS_MAX,
  });
  // Another error than ours: the one to explain is in a file that the model imports.
  if (!stderr.includes(`SyntaxError: ${error.message}`)) return undefined;
  const line = /^\S*:(\d+)\n/.exec(stderr)?.[1];
  return line === undefined ? undefined : `${basename(path)}:${line}`;
}

function checkDefinition(exported: Readonly<Record<string, unknown>>, path: string): ModelDefinition {
  const found = exported.default as { default?: unknown } | undefined;
  // CommonJS that was compiled from an ES module has its default export one step further in.
  const definition = (found?.default ?? found) as Partial<ModelDefinition> | undefined;
  const file = basename(path);
  if (definition === undefined || definition === null || isEmptyModule(definition)) {
    throw misuse(`${file} has no default export`);
  }
  if (typeof definition.execute !== 'function') {
    throw misuse(`the default export of ${file} has no function 'execute'`);
  }
  for (const name of ['initialize', 'finalize'] as const) {
    const member: unknown = definition[name];
    if (member !== undefined && typeof member !== 'function')
      throw misuse(`'${name}' of ${file} is no function`);
  }
  return definition as ModelDefinition;
}

/** What CommonJS exports when it exports nothing. */
function isEmptyModule(value: object): boolean {
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function misuse(what: string): StatusError {
  return internal(`${what}; write: export default defineModel({ execute(requests) { … } })`);
}
