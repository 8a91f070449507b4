// The classification extension: an output tensor → its best classes as BYTES `value:index[:label]`, best first.
// Called when the response is written; the model ran as ever.

import { type DataType, elementBytesOf } from '../../domain/datatype.ts';
import { CLASSIFICATION_ELEMENTS_MAX } from '../../domain/limits.ts';
import type { ModelView } from '../../domain/model-view.ts';
import { internal, invalidArgument, type StatusError } from '../../domain/status.ts';
import { contiguous, elementCountOf, type OutputTensor } from '../../domain/tensor.ts';

/** Up to this many classes are kept in order while scanning; for more it is cheaper to sort all. */
const SELECTION_CLASSES_MAX = 64;

interface Scores {
  at(index: number): number | bigint;
  /** As C's to_string: six decimals for floats. */
  text(index: number): string;
}

export function classify(options: {
  output: OutputTensor;
  classCount: number;
  model: ModelView;
}): OutputTensor {
  const { output, classCount, model } = options;
  const { name, datatype, shape } = output;
  const isBatched = model.maxBatchSize > 0 && shape.length > 0;
  const batchSize = isBatched ? shape[0]! : 1;
  const itemCount = elementCountOf(isBatched ? shape.slice(1) : shape);
  if (itemCount > CLASSIFICATION_ELEMENTS_MAX)
    throw invalidArgument('classification output tensor too large');
  const data = contiguous(output.data);
  const scores = scoresOf(datatype, data);
  if (data.length !== batchSize * itemCount * elementBytesOf(datatype)) {
    throw internal(`output tensor shape does not match size of output for '${name}'`);
  }
  const labels = model.labelsOf(name);
  const keptCount = Math.min(classCount, itemCount);
  const parts: Buffer[] = [];
  let byteLength = 0;
  for (let item = 0; item < batchSize; item++) {
    const first = item * itemCount;
    for (const index of bestOf(scores, { first, itemCount, keptCount })) {
      const label = labels?.[index];
      const text = `${scores.text(first + index)}:${index}${label === undefined ? '' : `:${label}`}`;
      const part = bytesElement(text);
      parts.push(part);
      byteLength += part.length;
    }
  }
  const classShape = isBatched ? [batchSize, keptCount] : [keptCount];
  return { name, datatype: 'BYTES', shape: classShape, data: [Buffer.concat(parts)], byteLength };
}

function bytesElement(text: string): Buffer {
  const length = Buffer.byteLength(text);
  const element = Buffer.allocUnsafe(length + 4);
  element.writeUInt32LE(length);
  element.write(text, 4);
  return element;
}

/** Indexes inside the item, best score first; of equal scores the lower index comes first. */
function bestOf(
  scores: Scores,
  range: { first: number; itemCount: number; keptCount: number },
): ArrayLike<number> & Iterable<number> {
  const { first, itemCount, keptCount } = range;
  if (keptCount > SELECTION_CLASSES_MAX) {
    const indexes = Uint32Array.from({ length: itemCount }, (_, index) => index);
    indexes.sort((a, b) => {
      const left = scores.at(first + a);
      const right = scores.at(first + b);
      return left > right ? -1 : left < right ? 1 : a - b;
    });
    return indexes.subarray(0, keptCount);
  }
  const best: number[] = [];
  for (let index = 0; index < itemCount; index++) {
    const score = scores.at(first + index);
    let place = best.length;
    while (place > 0 && score > scores.at(first + best[place - 1]!)) place -= 1;
    if (place >= keptCount) continue;
    best.splice(place, 0, index);
    if (best.length > keptCount) best.pop();
  }
  return best;
}

function scoresOf(datatype: DataType, data: Buffer): Scores {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  switch (datatype) {
    case 'UINT8':
      return plainScores((index) => view.getUint8(index));
    case 'UINT16':
      return plainScores((index) => view.getUint16(index * 2, true));
    case 'UINT32':
      return plainScores((index) => view.getUint32(index * 4, true));
    case 'UINT64':
      return plainScores((index) => view.getBigUint64(index * 8, true));
    case 'INT8':
      return plainScores((index) => view.getInt8(index));
    case 'INT16':
      return plainScores((index) => view.getInt16(index * 2, true));
    case 'INT32':
      return plainScores((index) => view.getInt32(index * 4, true));
    case 'INT64':
      return plainScores((index) => view.getBigInt64(index * 8, true));
    case 'FP32':
      return floatScores((index) => view.getFloat32(index * 4, true));
    case 'FP64':
      return floatScores((index) => view.getFloat64(index * 8, true));
    default:
      throw unsupportedType(datatype);
  }
}

/** Also for BYTES, where the real server dies. */
function unsupportedType(datatype: DataType): StatusError {
  return invalidArgument(`class result not available for output due to unsupported type '${datatype}'`);
}

function plainScores(at: (index: number) => number | bigint): Scores {
  return { at, text: (index) => String(at(index)) };
}

function floatScores(at: (index: number) => number): Scores {
  return { at, text: (index) => fixedText(at(index)) };
}

/** C's `%f`. */
export function fixedText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const magnitude = Math.abs(value);
  if (magnitude === Number.POSITIVE_INFINITY) return `${sign}inf`;
  // Where toFixed turns to an exponent, every double is an integer.
  if (magnitude >= 1e21) return `${sign}${BigInt(magnitude)}.000000`;
  const text = magnitude.toFixed(6);
  // Odd multiples of 1/128 lie exactly between two texts; C takes the even one, toFixed the larger one.
  const lastDigit = text.charCodeAt(text.length - 1) - 0x30;
  const isTie = (magnitude * 128) % 2 === 1;
  return `${sign}${isTie && lastDigit % 2 === 1 ? `${text.slice(0, -1)}${lastDigit - 1}` : text}`;
}
