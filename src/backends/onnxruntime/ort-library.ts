// Finds ONNX Runtime's shared library, checks its version and makes callable functions of the rows of
// ort-api-table.ts. One library per process; session.ts and onnx-instance.ts call the functions.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import koffi from 'koffi';
import { internal, StatusError } from '../../domain/status.ts';
import { NativeWords, readText } from './native-memory.ts';
import {
  type ArgumentKind,
  ORT_API_VERSION_MIN,
  ORT_FUNCTIONS,
  type OrtApi,
  type OrtFunctionRow,
} from './ort-api-table.ts';

export interface OrtLibrary {
  readonly path: string;
  /** `1.30.0` */
  readonly version: string;
  readonly api: OrtApi;
  readonly env: bigint;
  /** `CPUExecutionProvider`, … */
  readonly providers: readonly string[];
  /** False when the threads of koffi have too small a stack to run a model on. */
  readonly canCallAsync: boolean;
}

/** koffi runs native code on a stack of its own, 2 MiB and 128 KiB at first: too little for nested subgraphs. */
const STACK_BYTES = 8 * 1024 * 1024;

/** Every failure comes back as a status, so the library need not print it as well. */
const LOG_SEVERITY_FATAL = 4;

const FILE_NAME = /^(libonnxruntime\.so(\.[\d.]+)?|libonnxruntime(\.[\d.]+)?\.dylib|onnxruntime\.dll)$/;

const opened = new Map<string, OrtLibrary>();

export function openOrtLibrary(libraryPath: string | undefined): OrtLibrary {
  const path = findLibraryFile(libraryPath);
  const known = opened.get(path);
  if (known !== undefined) return known;
  const library = loadLibrary(path);
  opened.set(path, library);
  return library;
}

/** Throws what a status says, and frees it. */
export function check(api: OrtApi, status: bigint | null): void {
  if (status !== null) throw statusError(api, status);
}

export function statusError(api: OrtApi, status: bigint): StatusError {
  const code = api.GetErrorCode(status);
  const message = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  return internal(`onnx runtime error ${code}: ${message}`);
}

function findLibraryFile(libraryPath: string | undefined): string {
  const path = libraryPath ?? bundledDirectory();
  if (!existsSync(path)) throw libraryNotFound(path);
  if (!statSync(path).isDirectory()) return path;
  const file = readdirSync(path)
    .filter((name) => FILE_NAME.test(name))
    .sort()[0];
  if (file === undefined) throw libraryNotFound(path);
  return join(path, file);
}

/** `bin/napi-v<n>/<platform>/<arch>` of the package onnxruntime-node, newest n. */
function bundledDirectory(): string {
  let root: string;
  try {
    root = dirname(createRequire(import.meta.url).resolve('onnxruntime-node/package.json'));
  } catch (error) {
    throw libraryNotFound('the package onnxruntime-node', error);
  }
  const bin = join(root, 'bin');
  const newest = existsSync(bin)
    ? readdirSync(bin)
        .filter((name) => name.startsWith('napi-v'))
        .sort((a, b) => Number(b.slice(6)) - Number(a.slice(6)))[0]
    : undefined;
  return join(bin, newest ?? 'napi', process.platform, process.arch);
}

function libraryNotFound(place: string, cause?: unknown): StatusError {
  return new StatusError(
    'UNAVAILABLE',
    `ONNX Runtime library not found at ${place}; run npm install, or name one with ` +
      '--backend-config=onnxruntime,library-path=<file or directory>',
    { cause },
  );
}

function loadLibrary(path: string): OrtLibrary {
  const canCallAsync = growStacks();
  let getApiBase: () => bigint;
  try {
    getApiBase = koffi.load(path).func('OrtGetApiBase', 'void *', []) as () => bigint;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StatusError('UNAVAILABLE', `ONNX Runtime library ${path} cannot be loaded: ${reason}`, {
      cause: error,
    });
  }
  const base = getApiBase();
  const getApi = functionAt<(version: number) => bigint | null>(base, 0, 'void *', ['uint32_t']);
  const version = functionAt<() => string>(base, 1, 'str', [])();
  // Asking for a version that the library does not have makes it print to stderr, so its own number comes first.
  const table = Number(version.split('.')[1]) >= ORT_API_VERSION_MIN ? getApi(ORT_API_VERSION_MIN) : null;
  if (table === null) {
    throw new StatusError(
      'UNAVAILABLE',
      `ONNX Runtime library ${path} is version ${version}; 1.${ORT_API_VERSION_MIN} or newer is needed`,
    );
  }
  const api = bindFunctions(table);
  const out = new NativeWords(1);
  check(api, api.CreateEnv(LOG_SEVERITY_FATAL, 'nereid', out.address));
  return { path, version, api, env: out.pointer(0), providers: listProviders(api), canCallAsync };
}

/** Sizes can only be set before the first library is loaded; a host that loads one earlier sets them itself. */
function growStacks(): boolean {
  try {
    koffi.config({ sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES, resident_async_pools: 1 });
  } catch {
    return (koffi.config().async_stack_size ?? 0) >= STACK_BYTES;
  }
  return true;
}

function bindFunctions(table: bigint): OrtApi {
  const api: Record<string, unknown> = {};
  for (const [name, row] of Object.entries<OrtFunctionRow>(ORT_FUNCTIONS)) {
    api[name] = functionAt(table, row.index, RESULT_SPELLINGS[row.result], row.arguments.map(spellArgument));
  }
  return api as unknown as OrtApi;
}

const RESULT_SPELLINGS = { status: 'void *', text: 'str', int: 'int', none: 'void' } as const;

function spellArgument(kind: ArgumentKind): string {
  switch (kind) {
    case 'pointer':
      return 'void *';
    case 'size':
      return 'size_t';
    case 'int':
      return 'int';
    case 'text':
      return 'str';
    case 'path':
      return process.platform === 'win32' ? 'str16' : 'str';
    case 'texts':
      return 'str *';
  }
}

function functionAt<F>(table: bigint, index: number, result: string, args: readonly string[]): F {
  const address: unknown = koffi.decode(table, index * 8, 'void *');
  return koffi.decode(address, koffi.proto(result, [...args])) as F;
}

function listProviders(api: OrtApi): string[] {
  const list = new NativeWords(1);
  const count = new NativeWords(1);
  check(api, api.GetAvailableProviders(list.address, count.address));
  const names: string[] = [];
  for (let i = 0; i < count.number(0); i++) {
    names.push(readText(koffi.decode(list.pointer(0), i * 8, 'void *') as bigint));
  }
  check(api, api.ReleaseAvailableProviders(list.pointer(0), names.length));
  return names;
}
