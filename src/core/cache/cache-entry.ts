// One entry of the response cache as bytes, the same in memory and in Redis: the answer, and the whole key it belongs to.
//
//   u8 format │ u48 bytes of the key │ u32 bytes of the head │ head (JSON) │ key │ bytes of the outputs
//
// The head holds the response's parameters and per output name, datatype, shape and byte length. Reading copies nothing: the
// outputs of an answer are views on the entry, which nobody changes. Pure; response-cache.ts calls it.

import { type DataType, isDataType } from '../../domain/datatype.ts';
import type { Parameters } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import type { CacheKey } from './cache-key.ts';
import { visitAll, visitInSteps } from './in-steps.ts';
import { type TaggedParameter, tagParameters, untagParameters } from './tagged-parameters.ts';

/** What of a response is the same for every client. */
export interface CachedResponse {
  readonly parameters: Parameters | undefined;
  readonly outputs: readonly OutputTensor[];
}

type OutputHead = [name: string, datatype: DataType, shape: readonly number[], byteLength: number];

interface EntryHead {
  readonly parameters?: TaggedParameter[];
  readonly outputs: OutputHead[];
}

/** Another number for any other layout, of the key's header too: a Redis may hold entries of other releases. */
const FORMAT = 1;
const PREAMBLE_BYTES = 11;

/** An entry that is laid out but not yet written. */
export interface EntryPlan {
  readonly byteLength: number;
  readonly pieces: readonly Buffer[];
}

export function planEntry(key: CacheKey, response: CachedResponse): EntryPlan {
  const parameters = tagParameters(response.parameters);
  const outputs = response.outputs.map(
    ({ name, datatype, shape, byteLength }): OutputHead => [name, datatype, shape, byteLength],
  );
  const head = Buffer.from(JSON.stringify({ parameters, outputs }));
  const preamble = Buffer.allocUnsafe(PREAMBLE_BYTES);
  preamble.writeUInt8(FORMAT, 0);
  preamble.writeUIntLE(key.byteLength, 1, 6);
  preamble.writeUInt32LE(head.length, 7);
  const data = response.outputs.flatMap((output) => output.data);
  const pieces = [preamble, head, ...key.pieces, ...data];
  return { pieces, byteLength: pieces.reduce((sum, piece) => sum + piece.length, 0) };
}

/** Memory of its own, so that it neither keeps larger buffers alive nor counts for less than it takes. */
export function writeEntry(plan: EntryPlan): Buffer {
  const entry = Buffer.allocUnsafeSlow(plan.byteLength);
  visitAll(plan.pieces, (bytes, at) => bytes.copy(entry, at) === bytes.length);
  return entry;
}

export async function writeEntryInSteps(plan: EntryPlan): Promise<Buffer> {
  const entry = Buffer.allocUnsafeSlow(plan.byteLength);
  await visitInSteps(plan.pieces, (bytes, at) => bytes.copy(entry, at) === bytes.length);
  return entry;
}

/** Undefined when the entry belongs to another request, or is no entry of this format. */
export function readEntry(entry: Buffer, key: CacheKey): CachedResponse | undefined {
  const parts = partsOf(entry);
  if (parts?.key.length !== key.byteLength) return undefined;
  return visitAll(key.pieces, (bytes, at) => isSameAt(parts.key, bytes, at)) ? responseOf(parts) : undefined;
}

export async function readEntryInSteps(entry: Buffer, key: CacheKey): Promise<CachedResponse | undefined> {
  const parts = partsOf(entry);
  if (parts?.key.length !== key.byteLength) return undefined;
  const isSame = await visitInSteps(key.pieces, (bytes, at) => isSameAt(parts.key, bytes, at));
  return isSame ? responseOf(parts) : undefined;
}

interface EntryParts {
  readonly head: Buffer;
  readonly key: Buffer;
  readonly data: Buffer;
}

function partsOf(entry: Buffer): EntryParts | undefined {
  if (entry.length < PREAMBLE_BYTES || entry.readUInt8(0) !== FORMAT) return undefined;
  const keyStart = PREAMBLE_BYTES + entry.readUInt32LE(7);
  const dataStart = keyStart + entry.readUIntLE(1, 6);
  if (dataStart > entry.length) return undefined;
  return {
    head: entry.subarray(PREAMBLE_BYTES, keyStart),
    key: entry.subarray(keyStart, dataStart),
    data: entry.subarray(dataStart),
  };
}

function isSameAt(whole: Buffer, bytes: Buffer, at: number): boolean {
  return bytes.compare(whole, at, at + bytes.length) === 0;
}

function responseOf({ head, data }: EntryParts): CachedResponse | undefined {
  try {
    // The format byte and the equal key say that this server, or one like it, wrote the head.
    const { parameters, outputs } = JSON.parse(head.toString()) as EntryHead;
    let at = 0;
    const tensors = outputs.map(([name, datatype, shape, byteLength]): OutputTensor => {
      if (!isDataType(datatype)) throw new TypeError(`'${String(datatype)}' is no datatype`);
      const bytes = data.subarray(at, at + byteLength);
      at += byteLength;
      return { name, datatype, shape, data: [bytes], byteLength };
    });
    return at === data.length ? { parameters: untagParameters(parameters), outputs: tensors } : undefined;
  } catch {
    // Somebody else wrote into this Redis; the request is executed.
    return undefined;
  }
}
