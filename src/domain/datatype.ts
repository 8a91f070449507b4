// The tensor datatypes of the protocol and their names in config.pbtxt.
// Read by every room; it knows no wire format and no backend.

export const DATA_TYPES = [
  'BOOL',
  'UINT8',
  'UINT16',
  'UINT32',
  'UINT64',
  'INT8',
  'INT16',
  'INT32',
  'INT64',
  'FP16',
  'FP32',
  'FP64',
  'BYTES',
  'BF16',
] as const;

export type DataType = (typeof DATA_TYPES)[number];

/** What an unknown datatype string of a request becomes; validation names it to the client. */
export const INVALID_DATA_TYPE = '<invalid>';
export type RequestDataType = DataType | typeof INVALID_DATA_TYPE;

/** Bytes of one element; 0 for BYTES, whose elements carry their own length. */
const ELEMENT_BYTES: Readonly<Record<DataType, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
  BF16: 2,
};

const KNOWN: ReadonlySet<string> = new Set(DATA_TYPES);

export function isDataType(name: string): name is DataType {
  return KNOWN.has(name);
}

export function elementBytesOf(datatype: DataType): number {
  return ELEMENT_BYTES[datatype];
}

/** `FP32` → `TYPE_FP32`; BYTES is spelled TYPE_STRING in a config. */
export function toConfigDataType(datatype: DataType): string {
  return datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`;
}

/** `TYPE_FP32` → `FP32`; undefined for TYPE_INVALID and names that are no datatype. */
export function fromConfigDataType(name: string): DataType | undefined {
  if (name === 'TYPE_STRING') return 'BYTES';
  const short = name.startsWith('TYPE_') ? name.slice(5) : '';
  return short !== 'BYTES' && isDataType(short) ? short : undefined;
}
