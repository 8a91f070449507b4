// The elements of an output tensor → the inside of its JSON `data` array, always flat.
// Text is gathered in pieces of some kilobytes, so that neither a write per element nor one giant string arises.

import { type DataType, elementBytesOf } from '../../domain/datatype.ts';
import { internal, invalidArgument, type StatusError } from '../../domain/status.ts';
import { contiguous, elementCountOf, type OutputTensor } from '../../domain/tensor.ts';
import { doubleText, type JsonWriter } from './json-writer.ts';

const PIECE_CHARS = 8192;

/** The text of element `index`, ASCII. */
type ElementText = (index: number) => string;

export function writeElements(writer: JsonWriter, output: OutputTensor): void {
  const { datatype } = output;
  const count = elementCountOf(output.shape);
  const data = contiguous(output.data);
  if (datatype === 'BYTES') {
    writeStrings(writer, { name: output.name, data, count });
    return;
  }
  if (datatype === 'FP16' || datatype === 'BF16') throw halfPrecisionRefused(datatype);
  if (data.length !== count * elementBytesOf(datatype)) {
    throw internal(
      `Failed to write 'data' field: output tensor shape does not match size of output for '${output.name}'`,
    );
  }
  const textOf = elementText(datatype, data);
  let piece = '';
  for (let index = 0; index < count; index++) {
    piece += index === 0 ? textOf(index) : `,${textOf(index)}`;
    if (piece.length >= PIECE_CHARS) {
      writer.ascii(piece);
      piece = '';
    }
  }
  writer.ascii(piece);
}

function halfPrecisionRefused(datatype: DataType): StatusError {
  return invalidArgument(
    `sending ${datatype} data via JSON is not supported. Please use the binary data format for output`,
  );
}

function elementText(datatype: Exclude<DataType, 'BYTES' | 'FP16' | 'BF16'>, data: Buffer): ElementText {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  switch (datatype) {
    case 'BOOL':
      return (index) => (data[index] === 0 ? 'false' : 'true');
    case 'UINT8':
      return (index) => String(data[index]);
    case 'UINT16':
      return (index) => String(view.getUint16(index * 2, true));
    case 'UINT32':
      return (index) => String(view.getUint32(index * 4, true));
    case 'UINT64':
      return (index) => String(view.getBigUint64(index * 8, true));
    case 'INT8':
      return (index) => String(view.getInt8(index));
    case 'INT16':
      return (index) => String(view.getInt16(index * 2, true));
    case 'INT32':
      return (index) => String(view.getInt32(index * 4, true));
    case 'INT64':
      return (index) => String(view.getBigInt64(index * 8, true));
    case 'FP32':
      return (index) => doubleText(view.getFloat32(index * 4, true));
    case 'FP64':
      return (index) => doubleText(view.getFloat64(index * 8, true));
  }
}

function writeStrings(writer: JsonWriter, output: { name: string; data: Buffer; count: number }): void {
  const { data } = output;
  let offset = 0;
  for (let index = 0; index < output.count; index++) {
    const start = offset + 4;
    const end = start <= data.length ? start + data.readUInt32LE(offset) : Number.POSITIVE_INFINITY;
    if (end > data.length) {
      throw internal(`output tensor shape does not match size of output for '${output.name}'`);
    }
    if (index > 0) writer.ascii(',');
    writer.quotedBytes(data.subarray(start, end));
    offset = end;
  }
}
