// The enums of model_config.proto: names and numbers. Values in a ModelConfig are the names; the numbers are
// for wire formats that carry them (protobuf, text format and JSON accept both).

export type EnumSchema = Readonly<Record<string, number>>;

export const MODEL_CONFIG_ENUMS: Readonly<Record<string, EnumSchema>> = {
  DataType: {
    TYPE_INVALID: 0,
    TYPE_BOOL: 1,
    TYPE_UINT8: 2,
    TYPE_UINT16: 3,
    TYPE_UINT32: 4,
    TYPE_UINT64: 5,
    TYPE_INT8: 6,
    TYPE_INT16: 7,
    TYPE_INT32: 8,
    TYPE_INT64: 9,
    TYPE_FP16: 10,
    TYPE_FP32: 11,
    TYPE_FP64: 12,
    TYPE_STRING: 13,
    TYPE_BF16: 14,
  },
  'ModelInstanceGroup.Kind': { KIND_AUTO: 0, KIND_GPU: 1, KIND_CPU: 2, KIND_MODEL: 3 },
  'ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind': { KIND_NVDLA: 0 },
  'ModelInput.Format': { FORMAT_NONE: 0, FORMAT_NHWC: 1, FORMAT_NCHW: 2 },
  'BatchInput.Kind': {
    BATCH_ELEMENT_COUNT: 0,
    BATCH_ACCUMULATED_ELEMENT_COUNT: 1,
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO: 2,
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE: 3,
    BATCH_ITEM_SHAPE: 4,
    BATCH_ITEM_SHAPE_FLATTEN: 5,
  },
  'BatchOutput.Kind': { BATCH_SCATTER_WITH_INPUT_SHAPE: 0 },
  'ModelOptimizationPolicy.ModelPriority': { PRIORITY_DEFAULT: 0, PRIORITY_MAX: 1, PRIORITY_MIN: 2 },
  'ModelQueuePolicy.TimeoutAction': { REJECT: 0, DELAY: 1 },
  'ModelSequenceBatching.Control.Kind': {
    CONTROL_SEQUENCE_START: 0,
    CONTROL_SEQUENCE_READY: 1,
    CONTROL_SEQUENCE_END: 2,
    CONTROL_SEQUENCE_CORRID: 3,
  },
};

const NAMES_BY_NUMBER = new Map(
  Object.entries(MODEL_CONFIG_ENUMS).map(([name, values]) => [
    name,
    new Map(Object.entries(values).map(([value, number]) => [number, value])),
  ]),
);

export function enumSchemaOf(enumName: string): EnumSchema {
  const found = MODEL_CONFIG_ENUMS[enumName];
  if (found === undefined) throw new Error(`no enum ${enumName} in the ModelConfig schema`);
  return found;
}

export function enumNumberOf(enumName: string, valueName: string): number | undefined {
  const values = enumSchemaOf(enumName);
  return Object.hasOwn(values, valueName) ? values[valueName] : undefined;
}

export function enumNameOf(enumName: string, number: number): string | undefined {
  return NAMES_BY_NUMBER.get(enumName)?.get(number);
}
