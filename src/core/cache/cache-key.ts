// What makes two requests the same to the response cache: the load of the model, inputs with name, datatype, shape and bytes,
// parameters, requested outputs. Pure; cached-model.ts makes a key of every request, response-cache.ts finds entries by it.
//
//   header (JSON, UTF-8) │ bytes of the inputs in the order of their names
//
// Neither the request's id, priority nor timeout are in it: they say when and to whom to answer, not what. Classification is
// made of the raw output after the cache, so an answer serves any class count.

import { createHash } from 'node:crypto';
import type { InferRequest } from '../../domain/request.ts';
import type { InputTensor } from '../../domain/tensor.ts';
import { visitAll, visitInSteps } from './in-steps.ts';
import { tagParameters } from './tagged-parameters.ts';

export interface CacheKey {
  /** The header, then views on the inputs as they were received. */
  readonly pieces: readonly Buffer[];
  readonly byteLength: number;
}

/** `scope` stands for one load of one version of a model; see cache-scope.ts. */
export function keyOf(scope: string, request: InferRequest): CacheKey {
  const inputs = [...request.inputs].sort(byName);
  // The order of requested outputs may be the order of the answer, so it is kept.
  const header = Buffer.from(
    JSON.stringify([
      scope,
      inputs.map(({ name, datatype, shape, byteLength }) => [name, datatype, shape, byteLength]),
      request.requestedOutputs,
      tagParameters(request.parameters)?.sort(([a], [b]) => compare(a, b)),
      typeof request.correlationId,
      String(request.correlationId),
      request.sequenceFlags,
    ]),
  );
  const pieces: Buffer[] = [header];
  let byteLength = header.length;
  for (const input of inputs) {
    for (const piece of input.data) {
      pieces.push(piece);
      byteLength += piece.length;
    }
  }
  return { pieces, byteLength };
}

/** Finds the place of an entry; whether it is the right one, the whole key decides. */
export type DigestName = string;

export function digestOf(key: CacheKey): DigestName {
  const hash = createHash('sha256');
  visitAll(key.pieces, (bytes) => {
    hash.update(bytes);
    return true;
  });
  return hash.digest('base64url');
}

/** For large keys: 100 MB take 60 ms, in pieces of half a millisecond. */
export async function digestInSteps(key: CacheKey): Promise<DigestName> {
  const hash = createHash('sha256');
  await visitInSteps(key.pieces, (bytes) => {
    hash.update(bytes);
    return true;
  });
  return hash.digest('base64url');
}

function byName(a: InputTensor, b: InputTensor): number {
  return compare(a.name, b.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
