// model_warmup: the batches every instance runs before it is ready, straight to the host, past every scheduler. Samples
// are made once per load, by load-version.ts; checks and texts are those of a real Triton 2.51.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DataType, elementBytesOf, fromConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig, ModelWarmup, WarmupInput } from '../../domain/model-config.ts';
import { EMPTY_REQUEST } from '../../domain/request.ts';
import { internal, invalidArgument } from '../../domain/status.ts';
import { elementCountOf, type InputTensor } from '../../domain/tensor.ts';
import type { SentInput, SentRequest } from '../../instance/execute-frame.ts';
import type { WarmupBatch, WarmupRun } from '../../instance/warmup-batch.ts';
import type { ModelStats } from '../stats/model-stats.ts';
import { idPrefix, type RequestRules, validateRequest } from '../validate.ts';
import { createTensorTable } from './tensor-table.ts';

/** Throws INVALID_ARG when a sample is no request that the model would take. */
export async function createWarmup(config: ModelConfig, modelDirectory: string): Promise<WarmupBatch[]> {
  const isBatching = config.max_batch_size > 0;
  for (const sample of config.model_warmup) checkDims(sample);
  const batches: WarmupBatch[] = [];
  for (const sample of config.model_warmup) {
    // As many requests of one row each; none, and nothing is looked at.
    if (sample.batch_size === 0) continue;
    const request = await sampleRequest(config, sample, modelDirectory);
    const requests = new Array<SentRequest>(sample.batch_size).fill(request);
    // Of a model that does not batch an execution takes one request.
    const once = isBatching ? [requests] : requests.map((one) => [one]);
    if (isBatching && sample.batch_size > config.max_batch_size) throw tooLarge(config, sample);
    for (let i = Math.max(1, sample.count); i > 0; i--) {
      for (const batch of once) batches.push({ sample: sample.name, requests: batch });
    }
  }
  return batches;
}

export function countWarmup(stats: ModelStats, runs: readonly WarmupRun[], wallMs: number): void {
  for (const { requestCount, requestNs, computeInputNs, computeInferNs, computeOutputNs } of runs) {
    stats.recordExecution(requestCount, computeInputNs, computeInferNs, computeOutputNs, wallMs);
    for (let i = 0; i < requestCount; i++) {
      stats.recordSuccess(1, requestNs, 0, computeInputNs, computeInferNs, computeOutputNs);
    }
  }
}

/** Triton sends such a batch to the backend all the same; with the Python backend it died of it. */
function tooLarge(config: ModelConfig, sample: ModelWarmup): Error {
  return invalidArgument(
    `warmup sample '${sample.name}' has batch_size ${sample.batch_size}, model '${config.name}' allows ${config.max_batch_size}`,
  );
}

function checkDims(sample: ModelWarmup): void {
  for (const [name, input] of Object.entries(sample.inputs)) {
    if (input.dims.every((dim) => dim >= 0)) continue;
    throw invalidArgument(
      `warmup setting expects all variable-size dimensions are specified for input '${name}'`,
    );
  }
}

async function sampleRequest(
  config: ModelConfig,
  sample: ModelWarmup,
  modelDirectory: string,
): Promise<SentRequest> {
  const tensors = createTensorTable(config);
  const rules: RequestRules = { modelName: config.name, maxBatchSize: config.max_batch_size, tensors };
  const hiddenIndexes = hiddenIndexesOf(config);
  const inputs: InputTensor[] = [];
  const hidden: SentInput[] = [];
  for (const [name, input] of Object.entries(sample.inputs)) {
    const data = await sampleData(name, input, modelDirectory);
    const shape = config.max_batch_size > 0 ? [1, ...input.dims] : input.dims;
    const tensor = { shape, data: [data], byteLength: data.length };
    const index = tensors.inputByName.has(name) ? undefined : hiddenIndexes.get(name);
    if (index === undefined) inputs.push({ name, datatype: datatypeOf(input), ...tensor });
    else hidden.push({ index, ...tensor });
  }
  const { sent } = validateRequest({ ...EMPTY_REQUEST, inputs }, rules);
  return { ...sent, inputs: [...sent.inputs, ...hidden] };
}

/** Control and state tensors: no client can send them, but a warmup can. Hosts count them after config.input. */
function hiddenIndexesOf(config: ModelConfig): ReadonlyMap<string, number> {
  const sequence = config.sequence_batching;
  const names = [
    ...(sequence?.control_input ?? []).map((control) => control.name),
    ...(sequence?.state ?? []).map((state) => state.input_name),
  ];
  return new Map(names.map((name, i) => [name, config.input.length + i]));
}

function datatypeOf(input: WarmupInput): DataType {
  return fromConfigDataType(input.data_type) ?? 'FP32';
}

async function sampleData(name: string, input: WarmupInput, modelDirectory: string): Promise<Buffer> {
  const datatype = datatypeOf(input);
  const count = elementCountOf(input.dims);
  // An empty string is four zero bytes, its length.
  const bytes = datatype === 'BYTES' ? count * 4 : count * elementBytesOf(datatype);
  if (input.input_data_file !== undefined) {
    const data = await readSample(join(modelDirectory, 'warmup', input.input_data_file));
    if (datatype === 'BYTES') return data;
    if (data.length >= bytes) return data.subarray(0, bytes);
    throw invalidArgument(
      `${idPrefix(EMPTY_REQUEST)}warmup setting expects ${bytes} bytes, but the data provided from ${input.input_data_file}only has ${data.length} bytes`,
    );
  }
  if (input.zero_data === undefined && input.random_data === undefined) {
    throw invalidArgument(
      `${idPrefix(EMPTY_REQUEST)}warmup setting expects input '${name}' to have input_data_type set`,
    );
  }
  const data = Buffer.alloc(bytes);
  if (input.random_data !== undefined && datatype !== 'BYTES') fillRandom(data, datatype);
  return data;
}

async function readSample(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const reason = code === 'ENOENT' ? 'No such file or directory' : String(thrown);
    throw internal(`failed to open text file for read ${path}: ${reason}`);
  }
}

/** Random numbers in a range that no model chokes on; random bits would be NaN and huge integers. */
function fillRandom(data: Buffer, datatype: DataType): void {
  const width = elementBytesOf(datatype);
  for (let i = 0; i < data.length; i += width) {
    if (datatype === 'FP32') data.writeFloatLE(Math.random(), i);
    else if (datatype === 'FP64') data.writeDoubleLE(Math.random(), i);
    else if (datatype === 'BOOL') data[i] = Math.random() < 0.5 ? 0 : 1;
    // Every pattern below that of 1.0 is a number from 0 to 1.
    else if (datatype === 'FP16') data.writeUInt16LE(Math.floor(Math.random() * 0x3c00), i);
    else if (datatype === 'BF16') data.writeUInt16LE(Math.floor(Math.random() * 0x3f80), i);
    else data[i] = Math.floor(Math.random() * 128);
  }
}
