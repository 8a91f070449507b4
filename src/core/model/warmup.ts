// model_warmup: the batches every instance runs before it is ready. Samples are made once per load.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DataType, elementBytesOf, fromConfigDataType } from '../../domain/datatype.ts';
import type { ModelConfig, ModelWarmup, WarmupInput } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';
import { elementCountOf } from '../../domain/tensor.ts';
import type { SentInput, SentRequest } from '../../instance/execute-frame.ts';
import type { WarmupBatch } from '../../instance/instance.ts';
import { createTensorTable, reshapeTo } from './tensor-table.ts';

export async function createWarmup(config: ModelConfig, modelDirectory: string): Promise<WarmupBatch[]> {
  const batches: WarmupBatch[] = [];
  for (const sample of config.model_warmup) {
    const request = await sampleRequest(config, sample, modelDirectory);
    // batch_size requests of one row each in one batch, as Triton does it. A model that does not batch gets
    // them one after another.
    const isBatching = config.max_batch_size > 0;
    const requests = new Array<SentRequest>(isBatching ? sample.batch_size : 1).fill(request);
    const runs = Math.max(1, sample.count) * (isBatching ? 1 : Math.max(1, sample.batch_size));
    if (requests.length === 0) continue;
    for (let i = 0; i < runs; i++) batches.push({ sample: sample.name, requests });
  }
  return batches;
}

async function sampleRequest(
  config: ModelConfig,
  sample: ModelWarmup,
  modelDirectory: string,
): Promise<SentRequest> {
  const tensors = createTensorTable(config);
  const inputs: SentInput[] = [];
  for (const [name, input] of Object.entries(sample.inputs)) {
    if (input.dims.some((dim) => dim < 0)) {
      throw invalidArgument(
        `warmup setting expects all variable-size dimensions are specified for input '${name}'`,
      );
    }
    const spec = tensors.inputByName.get(name);
    if (spec === undefined) {
      throw invalidArgument(`unexpected inference input '${name}' for model '${config.name}' in warmup`);
    }
    const data = await sampleData(input, modelDirectory);
    const batchDims = config.max_batch_size > 0 ? 1 : 0;
    const shape = batchDims === 1 ? [1, ...input.dims] : input.dims;
    inputs.push({
      index: spec.index,
      shape:
        spec.reshape === undefined
          ? shape
          : reshapeTo(shape, { from: spec.dims, to: spec.reshape, batchDims }),
      data: [data],
      byteLength: data.length,
    });
  }
  return { inputs, requestedOutputs: [] };
}

async function sampleData(input: WarmupInput, modelDirectory: string): Promise<Buffer> {
  const datatype = fromConfigDataType(input.data_type) ?? 'FP32';
  const count = elementCountOf(input.dims);
  // An empty string is four zero bytes, its length.
  const bytes = datatype === 'BYTES' ? count * 4 : count * elementBytesOf(datatype);
  if (input.input_data_file !== undefined) {
    const data = await readFile(join(modelDirectory, 'warmup', input.input_data_file));
    if (data.length < bytes) {
      throw invalidArgument(
        `warmup setting expects ${bytes} bytes, but the data provided from ${input.input_data_file}only has ${data.length} bytes`,
      );
    }
    return datatype === 'BYTES' ? data : data.subarray(0, bytes);
  }
  const data = Buffer.alloc(bytes);
  if (input.random_data === true && datatype !== 'BYTES') fillRandom(data, datatype);
  return data;
}

/** Random numbers in a range that no model chokes on; random bits would be NaN and huge integers. */
function fillRandom(data: Buffer, datatype: DataType): void {
  const width = elementBytesOf(datatype);
  for (let i = 0; i < data.length; i += width) {
    if (datatype === 'FP32') data.writeFloatLE(Math.random(), i);
    else if (datatype === 'FP64') data.writeDoubleLE(Math.random(), i);
    else if (datatype === 'BOOL') data[i] = Math.random() < 0.5 ? 0 : 1;
    else if (datatype !== 'FP16' && datatype !== 'BF16') data[i] = Math.floor(Math.random() * 128);
  }
}
