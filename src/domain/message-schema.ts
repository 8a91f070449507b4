// What a protobuf message looks like, as data: the words in which model-config-schema.ts is written.
// Read by schema-driven parsers, printers and codecs; it knows no particular message.

/** `bytes` is for messages of gRPC alone; ModelConfig has none. */
export type ScalarType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'uint64'
  | 'float'
  | 'double';

/** What one value is: a scalar, or an enum or message by its name within the package. */
export interface ValueSchema {
  readonly type: ScalarType | 'enum' | 'message';
  /** The enum's or message's name without the package, `ModelInput.Format`; empty for scalars. */
  readonly typeName: string;
}

export interface FieldSchema {
  readonly number: number;
  readonly name: string;
  readonly type: ValueSchema['type'] | 'map';
  readonly typeName: string;
  readonly repeated: boolean;
  /** Name of the oneof that the field belongs to. */
  readonly oneof?: string;
  /** Only for maps: key (1) and value (2) of an entry. */
  readonly map?: { readonly key: FieldSchema; readonly value: FieldSchema };
}

export interface MessageSchema {
  /** Without the package: `ModelInstanceGroup.SecondaryDevice`. */
  readonly name: string;
  /** As protobuf error texts show it: `inference.ModelConfig`. */
  readonly fullName: string;
  readonly fields: readonly FieldSchema[];
  readonly fieldByName: ReadonlyMap<string, FieldSchema>;
}

function scalarOrNamed(value: ScalarType | ValueSchema): ValueSchema {
  return typeof value === 'string' ? { type: value, typeName: '' } : value;
}

export function enumOf(typeName: string): ValueSchema {
  return { type: 'enum', typeName };
}

export function messageOf(typeName: string): ValueSchema {
  return { type: 'message', typeName };
}

export function single(number: number, name: string, value: ScalarType | ValueSchema): FieldSchema {
  return { number, name, ...scalarOrNamed(value), repeated: false };
}

export function repeated(number: number, name: string, value: ScalarType | ValueSchema): FieldSchema {
  return { ...single(number, name, value), repeated: true };
}

/** A member of a oneof: it has presence even when it is a scalar. */
export function choice(
  number: number,
  name: string,
  value: ScalarType | ValueSchema,
  oneof: string,
): FieldSchema {
  return { ...single(number, name, value), oneof };
}

export function map(
  number: number,
  name: string,
  key: ScalarType,
  value: ScalarType | ValueSchema,
): FieldSchema {
  const entry = { key: single(1, 'key', key), value: single(2, 'value', value) };
  return { number, name, type: 'map', typeName: '', repeated: false, map: entry };
}
