// Decoupled models for the fault tests, on the backends that need no file.
import { mkdirSync, writeFileSync } from 'node:fs';
import type { TestRepository } from './repository.ts';

const REPEAT_CONFIG = `backend: "repeat"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [
  { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
  { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] }
]
output [
  { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] }
]
instance_group [ { count: 1 kind: KIND_CPU } ]
`;

const SQUARE_CONFIG = `backend: "square"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
`;

/** One response per element of IN, under the name `repeat`. */
export function addRepeat(repository: TestRepository): void {
  add(repository, 'repeat', REPEAT_CONFIG);
}

/** As many responses as IN says, under the name `square`. */
export function addSquare(repository: TestRepository): void {
  add(repository, 'square', SQUARE_CONFIG);
}

function add(repository: TestRepository, name: string, config: string): void {
  mkdirSync(repository.at(name, '1'), { recursive: true });
  writeFileSync(repository.at(name, 'config.pbtxt'), config);
}

/** nv_inference_pending_request_count of a model, and of all models without a name. */
export async function pendingCount(metricsUrl: string, model?: string): Promise<number> {
  const text = await (await fetch(metricsUrl, { headers: { Connection: 'close' } })).text();
  const pattern = /^nv_inference_pending_request_count\{model="([^"]*)".*\} ([0-9]+)$/gm;
  const counts = [...text.matchAll(pattern)].filter(([, name]) => model === undefined || name === model);
  if (counts.length === 0) throw new Error(`no pending count in\n${text}`);
  return counts.reduce((sum, [, , count]) => sum + Number(count), 0);
}
