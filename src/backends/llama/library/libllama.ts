// Loads libllama once per host and binds its functions. Refuses any release whose structures are not those of structs.ts,
// before one of them crosses the border. Used by model.ts, context.ts and grammar.ts.

import koffi from 'koffi';
import { StatusError } from '../../../domain/status.ts';
import { AsideTokenizer } from './aside-tokenizer.ts';
import { checkLayout } from './check-layout.ts';
import { findLibrary } from './find-library.ts';
import {
  type Bound,
  type FunctionRow,
  GGML_BASE_FUNCTIONS,
  GGML_FUNCTIONS,
  LLAMA_FUNCTIONS,
  type MaybePointer,
} from './functions.ts';
import { typeNamed } from './structs.ts';

/** With or without a suffix: the prebuilt one calls itself 0.5.0-dev. */
export const LIBRARY_VERSION = '0.5.0';

export type LlamaFunctions = Bound<typeof LLAMA_FUNCTIONS> &
  Bound<typeof GGML_FUNCTIONS> &
  Bound<typeof GGML_BASE_FUNCTIONS>;

export interface LlamaDevice {
  readonly name: string;
  readonly description: string;
  readonly kind: 'CPU' | 'GPU';
  readonly pointer: bigint;
}

export interface LlamaLibrary {
  readonly directory: string;
  readonly version: string;
  readonly functions: LlamaFunctions;
  readonly devices: readonly LlamaDevice[];
  readonly asideTokenizer: AsideTokenizer;
  /** Null where the CPU backend does not export pools. */
  createThreadpool(threadCount: number): MaybePointer;
  /** What the library has printed since the last call, errors and warnings; then nothing is left. */
  takeMessages(): string[];
}

type LogLevel = 'error' | 'warning' | 'info';

let loaded: { path: string | undefined; library: LlamaLibrary } | undefined;

export function loadLibrary(
  path: string | undefined,
  log: (level: LogLevel, line: string) => void,
): LlamaLibrary {
  if (loaded === undefined) loaded = { path, library: open(path, log) };
  return loaded.library;
}

function open(path: string | undefined, log: (level: LogLevel, line: string) => void): LlamaLibrary {
  const files = findLibrary(path);
  const functions = bindAll(files);
  const version = functions.llama_version() ?? 'unknown';
  if (version.split('-')[0] !== LIBRARY_VERSION) {
    throw new StatusError(
      'UNAVAILABLE',
      `libllama in ${files.directory} is version ${version}; this server needs ${LIBRARY_VERSION}, which node-llama-cpp 3.22.1 holds`,
    );
  }
  const messages = collectMessages(functions, log);
  checkLayout(functions, files.directory);
  functions.ggml_backend_load_all_from_path(files.directory);
  functions.llama_backend_init();
  const devices = listDevices(functions);
  if (devices.every((device) => device.kind !== 'CPU')) {
    throw new StatusError(
      'UNAVAILABLE',
      `libllama in ${files.directory} has no CPU backend for this processor`,
    );
  }
  return {
    directory: files.directory,
    version,
    functions,
    devices,
    asideTokenizer: new AsideTokenizer(files.llama),
    createThreadpool: (threadCount) => createThreadpool(functions, devices, threadCount),
    takeMessages: () => messages.splice(0),
  };
}

function bindAll(files: { llama: string; ggml: string; ggmlBase: string }): LlamaFunctions {
  try {
    // In the order of their dependencies, so that each finds the one below it whatever its search path is.
    const base = koffi.load(files.ggmlBase, { global: true });
    const ggml = koffi.load(files.ggml, { global: true });
    const llama = koffi.load(files.llama, { global: true });
    return {
      ...bind(llama, LLAMA_FUNCTIONS),
      ...bind(ggml, GGML_FUNCTIONS),
      ...bind(base, GGML_BASE_FUNCTIONS),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StatusError('UNAVAILABLE', `libllama cannot be loaded from ${files.llama}: ${reason}`, {
      cause: error,
    });
  }
}

function bind<T extends Readonly<Record<string, FunctionRow>>>(
  library: ReturnType<typeof koffi.load>,
  table: T,
): Bound<T> {
  const bound: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) {
    bound[name] = library.func(name, typeNamed(row.result), row.arguments.map(typeNamed));
  }
  return bound as Bound<T>;
}

const LOG_CALLBACK = koffi.proto('void', ['int32_t', 'str', 'void *']);
const MESSAGES_MAX = 200;
/** The cache is larger than any one request may become. */
const UNTRUE_WARNING = /possible training context overflow/;

/**
 * The library prints hundreds of lines at a load. Errors and warnings are kept for the reason of a failed load, and
 * logged; the rest is dropped. A line may come in pieces (level 5: goes on).
 */
function collectMessages(functions: LlamaFunctions, log: (level: LogLevel, line: string) => void): string[] {
  const messages: string[] = [];
  let level = 0;
  let line = '';
  const callback = (pieceLevel: number, text: string) => {
    if (pieceLevel !== 5) level = pieceLevel;
    line += text;
    if (!line.endsWith('\n')) return;
    const whole = line.trimEnd();
    line = '';
    if ((level !== 3 && level !== 4) || whole === '' || UNTRUE_WARNING.test(whole)) return;
    if (messages.length < MESSAGES_MAX) messages.push(whole);
    log(level === 4 ? 'error' : 'warning', whole);
  };
  functions.llama_log_set(koffi.register(callback, koffi.pointer(LOG_CALLBACK)), null);
  return messages;
}

const DEVICE_TYPE_CPU = 0;
const DEVICE_TYPE_ACCELERATOR = 3;

function listDevices(functions: LlamaFunctions): LlamaDevice[] {
  const devices: LlamaDevice[] = [];
  for (let i = 0; i < functions.ggml_backend_dev_count(); i++) {
    const pointer = functions.ggml_backend_dev_get(i);
    if (pointer === null) continue;
    const type = functions.ggml_backend_dev_type(pointer);
    if (type === DEVICE_TYPE_ACCELERATOR) continue;
    devices.push({
      name: functions.ggml_backend_dev_name(pointer) ?? '',
      description: functions.ggml_backend_dev_description(pointer) ?? '',
      kind: type === DEVICE_TYPE_CPU ? 'CPU' : 'GPU',
      pointer,
    });
  }
  return devices;
}

/**
 * Without a pool that stays, the library starts its threads anew in every decode. The functions live in the CPU backend
 * that was chosen for this processor.
 */
function createThreadpool(
  functions: LlamaFunctions,
  devices: readonly LlamaDevice[],
  threadCount: number,
): MaybePointer {
  const cpu = devices.find((device) => device.kind === 'CPU')!;
  const registry = functions.ggml_backend_dev_backend_reg(cpu.pointer);
  const address = functions.ggml_backend_reg_get_proc_address(registry, 'ggml_threadpool_new');
  if (address === null) return null;
  const params = new Uint8Array(THREADPOOL_PARAMS_BYTES);
  functions.ggml_threadpool_params_init(params, threadCount);
  const create = koffi.decode(address, koffi.proto('void *', ['void *'])) as (
    params: Uint8Array,
  ) => MaybePointer;
  return create(params);
}

/** More than the structure has: 512 flags and five settings. */
const THREADPOOL_PARAMS_BYTES = 1024;
