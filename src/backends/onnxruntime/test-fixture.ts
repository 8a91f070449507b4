// Loads a tiny model from test-models.ts the way a host does, and makes batches for it. Used only by tests.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  BackendInstance,
  ExecuteBatch,
  ExecuteInput,
  ExecuteOutput,
  ExecuteReply,
  ExecuteResult,
  InstancePlacement,
  LoadContext,
  StateSlot,
} from '../../backend/sdk.ts';
import type { ModelConfig, ModelInput, ModelOutput } from '../../domain/model-config.ts';
import { StatusError } from '../../domain/status.ts';
import { onnxruntimeBackend } from './onnxruntime-backend.ts';
import { TEST_MODELS, type TestModelName } from './test-models.ts';

export const CPU: InstancePlacement = { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 };

export function makeConfig(fields: Partial<ModelConfig>): ModelConfig {
  return {
    name: 'm',
    platform: 'onnxruntime_onnx',
    backend: 'onnxruntime',
    runtime: '',
    max_batch_size: 0,
    input: [],
    output: [],
    batch_input: [],
    batch_output: [],
    instance_group: [],
    default_model_filename: '',
    cc_model_filenames: {},
    metric_tags: {},
    parameters: {},
    model_warmup: [],
    version_labels: {},
    ...fields,
  };
}

export function makeInput(name: string, dataType: string, ...dims: number[]): ModelInput {
  return {
    name,
    data_type: dataType,
    format: 'FORMAT_NONE',
    dims,
    is_shape_tensor: false,
    allow_ragged_batch: false,
    optional: false,
    is_non_linear_format_io: false,
  };
}

export function makeOutput(name: string, dataType: string, ...dims: number[]): ModelOutput {
  return {
    name,
    data_type: dataType,
    dims,
    label_filename: '',
    is_shape_tensor: false,
    is_non_linear_format_io: false,
  };
}

/** Runs `body` with a version directory that holds `file`, and removes it afterwards. */
export async function withVersionDirectory<T>(
  file: { name: string; bytes: Buffer } | undefined,
  body: (versionDirectory: string) => Promise<T>,
): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'nereid-onnx-'));
  try {
    const versionDirectory = join(directory, '1');
    mkdirSync(versionDirectory);
    if (file !== undefined) writeFileSync(join(versionDirectory, file.name), file.bytes);
    return await body(versionDirectory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export function makeContext(versionDirectory: string, fields: Partial<LoadContext> = {}): LoadContext {
  return {
    modelName: 'm',
    version: 1,
    modelDirectory: join(versionDirectory, '..'),
    versionDirectory,
    config: makeConfig({}),
    isAutoComplete: true,
    backendConfig: {},
    placement: CPU,
    log: () => {},
    ...fields,
  };
}

export interface StartedModel {
  readonly config: ModelConfig;
  readonly instance: BackendInstance;
}

export function startModel(
  model: TestModelName,
  config: Partial<ModelConfig> = {},
  context: Partial<LoadContext> = {},
): Promise<StartedModel> {
  const file = { name: 'model.onnx', bytes: Buffer.from(TEST_MODELS[model], 'base64') };
  return withVersionDirectory(file, async (directory) => {
    const loaded = await onnxruntimeBackend.load(
      makeContext(directory, { config: makeConfig(config), ...context }),
    );
    return { config: loaded.config, instance: await loaded.start(loaded.config) };
  });
}

export interface TestInput {
  readonly index?: number;
  readonly shape: readonly number[];
  readonly data: Buffer | NodeJS.TypedArray;
}

/** Lays inputs out as the host protocol does: input by input, request after request, each input 64-aligned. */
export function makeBatch(
  requests: readonly (readonly TestInput[])[],
  options: {
    id?: number;
    requestedOutputs?: readonly (readonly number[])[];
    states?: readonly (StateSlot | undefined)[];
  } = {},
): ExecuteBatch {
  const pieces: Buffer[] = [];
  let position = 0;
  const laidOut: ExecuteInput[][] = requests.map(() => []);
  for (let i = 0; i < (requests[0]?.length ?? 0); i++) {
    const padding = (64 - (position % 64)) % 64;
    pieces.push(Buffer.alloc(padding));
    position += padding;
    requests.forEach((request, r) => {
      const { index = i, shape, data } = request[i]!;
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      laidOut[r]!.push({ index, shape, offset: position, byteLength: bytes.length });
      pieces.push(bytes);
      position += bytes.length;
    });
  }
  const payload = Buffer.from(new ArrayBuffer(position));
  Buffer.concat(pieces).copy(payload);
  return {
    id: options.id ?? 1,
    payload,
    requests: laidOut.map((inputs, r) => ({
      inputs,
      requestedOutputs: options.requestedOutputs?.[r] ?? [],
      state: options.states?.[r],
    })),
  };
}

/** ONNX models answer each request once. */
export function noSender(): never {
  throw new Error('the backend asked for a sender');
}

export function executedOutputsOf(result: ExecuteResult | undefined): readonly ExecuteOutput[] {
  assert.ok(Array.isArray(result));
  return result as readonly ExecuteOutput[];
}

export interface PlainOutput {
  readonly index: number;
  readonly shape: number[];
  readonly data: Buffer;
}

/** Runs a batch, copies the results and releases them. A failed request is its `describe()`. */
export async function runBatch(
  instance: BackendInstance,
  batch: ExecuteBatch,
): Promise<(PlainOutput[] | string)[]> {
  const reply: ExecuteReply = await instance.execute(batch, noSender);
  const results = reply.results.map((result) =>
    result instanceof StatusError
      ? result.describe()
      : executedOutputsOf(result).map(({ index, shape, data }) => ({
          index,
          shape: [...shape],
          data: Buffer.from(data),
        })),
  );
  reply.release?.();
  return results;
}

export function floatsOf(data: Buffer): number[] {
  return [...new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.length))];
}

export function bytesTensor(...elements: (string | Buffer)[]): Buffer {
  return Buffer.concat(
    elements.flatMap((element) => {
      const bytes = Buffer.from(element as string);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}
