// From a request target to what it asks for. Paths are matched as Triton matches them: whole path, not decoded,
// the query ignored. Targets repeat, so their routes are remembered, up to a bound.

import type { RestrictedCategory } from './services.ts';

export type ModelAction =
  | 'metadata'
  | 'infer'
  | 'generate'
  | 'generate_stream'
  | 'ready'
  | 'config'
  | 'stats';

export type Route =
  | { readonly kind: 'server-metadata' }
  | { readonly kind: 'health'; readonly what: 'live' | 'ready' }
  | {
      readonly kind: 'model';
      readonly action: ModelAction;
      readonly model: string;
      /** Digits, a label, or empty when the target names none. */
      readonly version: string;
    }
  | { readonly kind: 'all-stats' }
  | { readonly kind: 'logging' }
  | { readonly kind: 'index' }
  | {
      readonly kind: 'control';
      readonly action: 'load' | 'unload';
      readonly model: string;
      readonly repository: string;
    }
  | {
      readonly kind: 'trace';
      /** Empty: the settings of every model. */
      readonly model: string;
    }
  | {
      readonly kind: 'shared-memory';
      readonly memory: 'system' | 'cuda';
      readonly action: 'status' | 'register' | 'unregister';
      /** Empty when the target names none. */
      readonly region: string;
    };

const MODEL =
  /^\/v2\/models\/([^/]+)(?:\/versions\/([0-9]+|[A-Za-z_][A-Za-z0-9_.-]*))?(?:\/(infer|generate|generate_stream|ready|config|stats|trace\/setting))?$/;
const REPOSITORY = /^\/v2\/repository(?:\/([^/]+))?\/(index|models\/([^/]+)\/(load|unload))$/;
const SHARED_MEMORY = /^\/v2\/(system|cuda)sharedmemory(?:\/region\/([^/]+))?\/(status|register|unregister)$/;

const REMEMBERED_MAX = 1024;
const REMEMBERED_CHARS_MAX = 256;
const remembered = new Map<string, Route | undefined>();

/** Undefined: no such path. */
export function findRoute(target: string): Route | undefined {
  const known = remembered.get(target);
  if (known !== undefined) return known;
  const route = matchRoute(pathOf(target));
  if (route !== undefined && target.length <= REMEMBERED_CHARS_MAX) {
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(target, route);
  }
  return route;
}

/** The path of an origin-form or absolute-form target, as UTF-8: the target has one character per byte. */
export function pathOf(target: string): string {
  let path = target;
  const absolute = /^https?:\/\/[^/?#]*/i.exec(path);
  if (absolute !== null) path = path.slice(absolute[0].length) || '/';
  const end = path.search(/[?#]/);
  if (end !== -1) path = path.slice(0, end);
  return Buffer.from(path, 'latin1').toString('utf8');
}

function matchRoute(path: string): Route | undefined {
  switch (path) {
    case '/v2':
      return { kind: 'server-metadata' };
    case '/v2/health/live':
      return { kind: 'health', what: 'live' };
    case '/v2/health/ready':
      return { kind: 'health', what: 'ready' };
    case '/v2/models/stats':
      return { kind: 'all-stats' };
    case '/v2/logging':
      return { kind: 'logging' };
    case '/v2/trace/setting':
      return { kind: 'trace', model: '' };
    default:
      return matchModel(path) ?? matchRepository(path) ?? matchSharedMemory(path);
  }
}

function matchModel(path: string): Route | undefined {
  const match = MODEL.exec(path);
  if (match === null) return undefined;
  const model = match[1]!;
  const version = match[2] ?? '';
  const action = match[3] ?? 'metadata';
  if (action === 'trace/setting') {
    return version === '' ? { kind: 'trace', model } : undefined;
  }
  return { kind: 'model', action: action as ModelAction, model, version };
}

/** A label in the path of a model that has none is a path that does not exist, as in Triton. */
export function isLabelRoute(route: Route): boolean {
  return route.kind === 'model' && route.version !== '' && !/^[0-9]/.test(route.version);
}

function matchRepository(path: string): Route | undefined {
  const match = REPOSITORY.exec(path);
  if (match === null) return undefined;
  if (match[2] === 'index') return { kind: 'index' };
  return {
    kind: 'control',
    action: match[4] as 'load' | 'unload',
    model: match[3]!,
    repository: match[1] ?? '',
  };
}

function matchSharedMemory(path: string): Route | undefined {
  const match = SHARED_MEMORY.exec(path);
  if (match === null) return undefined;
  return {
    kind: 'shared-memory',
    memory: match[1] as 'system' | 'cuda',
    action: match[3] as 'status' | 'register' | 'unregister',
    region: match[2] ?? '',
  };
}

const MODEL_CATEGORIES: Readonly<Record<ModelAction, RestrictedCategory>> = {
  metadata: 'metadata',
  infer: 'inference',
  generate: 'inference',
  generate_stream: 'inference',
  ready: 'health',
  config: 'model-config',
  stats: 'statistics',
};

/** The group of endpoints that --http-restricted-api knows it by. */
export function categoryOf(route: Route): RestrictedCategory {
  switch (route.kind) {
    case 'server-metadata':
      return 'metadata';
    case 'health':
      return 'health';
    case 'model':
      return MODEL_CATEGORIES[route.action];
    case 'all-stats':
      return 'statistics';
    case 'logging':
      return 'logging';
    case 'index':
    case 'control':
      return 'model-repository';
    case 'trace':
    case 'shared-memory':
      return route.kind;
  }
}

const POST_ACTIONS: ReadonlySet<ModelAction> = new Set(['infer', 'generate', 'generate_stream']);

export function isMethodAllowed(route: Route, method: string): boolean {
  if (route.kind === 'logging' || route.kind === 'trace') return method === 'GET' || method === 'POST';
  const isPost =
    route.kind === 'index' ||
    route.kind === 'control' ||
    (route.kind === 'shared-memory' && route.action !== 'status') ||
    (route.kind === 'model' && POST_ACTIONS.has(route.action));
  return method === (isPost ? 'POST' : 'GET');
}
