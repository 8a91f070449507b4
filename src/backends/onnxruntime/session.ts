// Opens a session for one instance: finds the model file, turns config parameters into session options and lets
// ONNX Runtime load it. The owner releases what it gets.

import { stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { LoadContext } from '../../backend/sdk.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { internal, invalidArgument } from '../../domain/status.ts';
import { appendProviders, planProviders } from './execution-providers.ts';
import { NativeWords } from './native-memory.ts';
import { check, type OrtLibrary } from './ort-library.ts';

const DEFAULT_FILE_NAME = 'model.onnx';
const LOG_SEVERITY_FATAL = 4;

/** GraphOptimizationLevel by optimization.graph.level. */
const OPTIMIZATION_DISABLED = 0;
const OPTIMIZATION_BASIC = 1;
const OPTIMIZATION_EXTENDED = 2;
const OPTIMIZATION_ALL = 99;
const OPTIMIZATION_LEVELS: Readonly<Record<number, number>> = {
  [-1]: OPTIMIZATION_BASIC,
  1: OPTIMIZATION_EXTENDED,
  2: OPTIMIZATION_DISABLED,
};

export async function openSession(library: OrtLibrary, context: LoadContext): Promise<bigint> {
  const path = await findModelFile(context);
  const options = createSessionOptions(library, context);
  try {
    return await createSession(library, path, options);
  } finally {
    library.api.ReleaseSessionOptions(options);
  }
}

async function findModelFile({ config, versionDirectory }: LoadContext): Promise<string> {
  const path = join(versionDirectory, config.default_model_filename || DEFAULT_FILE_NAME);
  if (!(await statFile(path)).isDirectory()) return path;
  const inside = join(path, DEFAULT_FILE_NAME);
  await statFile(inside);
  return inside;
}

async function statFile(path: string): Promise<{ isDirectory(): boolean }> {
  try {
    return await stat(path);
  } catch {
    throw internal(`failed to stat file ${path}`);
  }
}

/** On a thread where possible: a large model takes seconds to load, and the host must go on answering pings. */
function createSession(library: OrtLibrary, path: string, options: bigint): Promise<bigint> {
  const { api, env } = library;
  const out = new NativeWords(1);
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null, status: bigint | null): void => {
      try {
        if (error !== null) throw error;
        check(api, status);
        resolve(out.pointer(0));
      } catch (reason) {
        reject(reason);
      }
    };
    if (library.canCallAsync) api.CreateSession.async(env, path, options, out.words, settle);
    else settle(null, api.CreateSession(env, path, options, out.words));
  });
}

function createSessionOptions(library: OrtLibrary, context: LoadContext): bigint {
  const { api } = library;
  const { config } = context;
  const out = new NativeWords(1);
  check(api, api.CreateSessionOptions(out.address));
  const options = out.pointer(0);
  try {
    const level = OPTIMIZATION_LEVELS[config.optimization?.graph?.level ?? 0] ?? OPTIMIZATION_ALL;
    check(api, api.SetSessionGraphOptimizationLevel(options, level));
    check(api, api.SetSessionLogSeverityLevel(options, LOG_SEVERITY_FATAL));
    setThreads(library, options, context);
    setMemory(library, options, config);
    setConfigEntries(library, options, config);
    appendProviders(library, options, planProviders(config, context.placement));
    for (const file of config.model_operations?.op_library_filename ?? []) {
      const path = isAbsolute(file) ? file : join(context.modelDirectory, file);
      check(api, api.RegisterCustomOpsLibrary(options, path, out.address));
    }
  } catch (error) {
    api.ReleaseSessionOptions(options);
    throw error;
  }
  return options;
}

function setThreads({ api }: OrtLibrary, options: bigint, { config, placement }: LoadContext): void {
  const executionMode = readInteger(config, 'execution_mode') ?? 0;
  if (executionMode !== 0 && executionMode !== 1) {
    throw invalidArgument(
      `Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got ${executionMode} .`,
    );
  }
  check(api, api.SetSessionExecutionMode(options, executionMode));
  const intraOp = readInteger(config, 'intra_op_thread_count') || placement.threadCount;
  if (intraOp > 0) check(api, api.SetIntraOpNumThreads(options, intraOp));
  const interOp = readInteger(config, 'inter_op_thread_count') ?? 0;
  if (interOp > 0) check(api, api.SetInterOpNumThreads(options, interOp));
}

function setMemory({ api }: OrtLibrary, options: bigint, config: ModelConfig): void {
  const arena = readInteger(config, 'enable_mem_arena');
  if (arena !== undefined) {
    check(api, arena === 0 ? api.DisableCpuMemArena(options) : api.EnableCpuMemArena(options));
  }
  const pattern = readInteger(config, 'enable_mem_pattern');
  if (pattern !== undefined) {
    check(api, pattern === 0 ? api.DisableMemPattern(options) : api.EnableMemPattern(options));
  }
}

function setConfigEntries({ api }: OrtLibrary, options: bigint, config: ModelConfig): void {
  // Several hosts share the cores: a thread that spins while it waits takes time from another model.
  const entries: Record<string, string> = {
    'session.intra_op.allow_spinning': '0',
    'session.inter_op.allow_spinning': '0',
  };
  for (const [key, { string_value: value }] of Object.entries(config.parameters)) {
    if (key.startsWith('session.')) entries[key] = value;
  }
  for (const [key, value] of Object.entries(entries)) {
    check(api, api.AddSessionConfigEntry(options, key, value));
  }
}

function readInteger(config: ModelConfig, key: string): number | undefined {
  const text = config.parameters[key]?.string_value;
  if (text === undefined) return undefined;
  if (!/^\s*-?\d+\s*$/.test(text)) {
    throw invalidArgument(`failed to convert value '${text}' of parameter '${key}' to integral number`);
  }
  return Number.parseInt(text, 10);
}
