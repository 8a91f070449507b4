// What a session says of its own inputs and outputs. Asked once per load; the answer is plain data that
// auto-completion, the load checks and the instance read.

import { unsupported } from '../../domain/status.ts';
import { NativeWords, readText } from './native-memory.ts';
import { check, type OrtLibrary } from './ort-library.ts';

export interface TensorSignature {
  readonly name: string;
  /** ONNXTensorElementDataType */
  readonly elementType: number;
  /** -1 is a symbolic dimension; empty is a scalar or a tensor of unknown rank. */
  readonly shape: readonly number[];
}

export interface SessionSignature {
  /** In the order of the graph. */
  readonly inputs: readonly TensorSignature[];
  readonly outputs: readonly TensorSignature[];
  /** Initializers that a request may override by sending an input of that name. */
  readonly overridable: readonly TensorSignature[];
}

const ONNX_TYPES = [
  'ONNX_TYPE_UNKNOWN',
  'ONNX_TYPE_TENSOR',
  'ONNX_TYPE_SEQUENCE',
  'ONNX_TYPE_MAP',
  'ONNX_TYPE_OPAQUE',
  'ONNX_TYPE_SPARSETENSOR',
  'ONNX_TYPE_OPTIONAL',
];
const ONNX_TYPE_TENSOR = 1;

interface Accessors {
  readonly count: 'SessionGetInputCount' | 'SessionGetOutputCount' | 'SessionGetOverridableInitializerCount';
  readonly name: 'SessionGetInputName' | 'SessionGetOutputName' | 'SessionGetOverridableInitializerName';
  readonly type:
    | 'SessionGetInputTypeInfo'
    | 'SessionGetOutputTypeInfo'
    | 'SessionGetOverridableInitializerTypeInfo';
}

export function readSessionSignature(library: OrtLibrary, session: bigint): SessionSignature {
  const read = (accessors: Accessors) => readTensors(library, session, accessors);
  return {
    inputs: read({
      count: 'SessionGetInputCount',
      name: 'SessionGetInputName',
      type: 'SessionGetInputTypeInfo',
    }),
    outputs: read({
      count: 'SessionGetOutputCount',
      name: 'SessionGetOutputName',
      type: 'SessionGetOutputTypeInfo',
    }),
    overridable: read({
      count: 'SessionGetOverridableInitializerCount',
      name: 'SessionGetOverridableInitializerName',
      type: 'SessionGetOverridableInitializerTypeInfo',
    }),
  };
}

function readTensors(library: OrtLibrary, session: bigint, accessors: Accessors): TensorSignature[] {
  const { api } = library;
  const out = new NativeWords(1);
  check(api, api.GetAllocatorWithDefaultOptions(out.address));
  const allocator = out.pointer(0);
  check(api, api[accessors.count](session, out.address));
  const count = out.number(0);
  const tensors: TensorSignature[] = [];
  for (let i = 0; i < count; i++) {
    check(api, api[accessors.name](session, i, allocator, out.address));
    const nameAddress = out.pointer(0);
    const name = readText(nameAddress);
    check(api, api.AllocatorFree(allocator, nameAddress));
    check(api, api[accessors.type](session, i, out.address));
    const typeInfo = out.pointer(0);
    try {
      tensors.push({ name, ...readTypeAndShape(library, typeInfo, name) });
    } finally {
      api.ReleaseTypeInfo(typeInfo);
    }
  }
  return tensors;
}

function readTypeAndShape(
  library: OrtLibrary,
  typeInfo: bigint,
  name: string,
): { elementType: number; shape: number[] } {
  const { api } = library;
  const out = new NativeWords(1);
  check(api, api.GetOnnxTypeFromTypeInfo(typeInfo, out.address));
  const onnxType = out.number(0);
  if (onnxType !== ONNX_TYPE_TENSOR) {
    const typeName = ONNX_TYPES[onnxType] ?? ONNX_TYPES[0];
    throw unsupported(`Unsupported ONNX Type '${typeName}' for I/O '${name}', expected 'ONNX_TYPE_TENSOR'.`);
  }
  check(api, api.CastTypeInfoToTensorInfo(typeInfo, out.address));
  const tensorInfo = out.pointer(0);
  const elementType = new NativeWords(1);
  check(api, api.GetTensorElementType(tensorInfo, elementType.address));
  check(api, api.GetDimensionsCount(tensorInfo, out.address));
  const rank = out.number(0);
  const dims = new NativeWords(rank);
  check(api, api.GetDimensions(tensorInfo, dims.address, rank));
  const shape: number[] = [];
  for (let i = 0; i < rank; i++) shape.push(dims.number(i));
  return { elementType: elementType.number(0), shape };
}
