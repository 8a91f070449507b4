// The part of ONNX Runtime's C API that we call, as data: place in the OrtApi table, arguments, result, and the
// API version that brought the function. The table only grows, so an index never changes its meaning.
// Read by ort-library.ts, which turns each row into a function.

/** An address, or memory of ours that native code may read or write during the call. */
export type Pointer = bigint | NodeJS.TypedArray | null;

interface ArgumentTypes {
  pointer: Pointer;
  size: number;
  int: number;
  text: string;
  /** UTF-16 on Windows, bytes elsewhere. */
  path: string;
  texts: readonly string[];
}

interface ResultTypes {
  /** null is success; anything else must be given to `check`, which frees it. */
  status: bigint | null;
  text: string;
  int: number;
  none: undefined;
}

export type ArgumentKind = keyof ArgumentTypes;
export type ResultKind = keyof ResultTypes;

export interface OrtFunctionRow {
  readonly index: number;
  readonly since: number;
  readonly result: ResultKind;
  readonly arguments: readonly ArgumentKind[];
}

function row<const R extends ResultKind, const A extends readonly ArgumentKind[]>(
  index: number,
  since: number,
  result: R,
  ...kinds: A
): { index: number; since: number; result: R; arguments: A } {
  return { index, since, result, arguments: kinds };
}

export const ORT_FUNCTIONS = {
  GetErrorCode: row(1, 1, 'int', 'pointer'),
  GetErrorMessage: row(2, 1, 'text', 'pointer'),
  CreateEnv: row(3, 1, 'status', 'int', 'text', 'pointer'),
  CreateSession: row(7, 1, 'status', 'pointer', 'path', 'pointer', 'pointer'),
  Run: row(9, 1, 'status', 'pointer', 'pointer', 'pointer', 'pointer', 'size', 'pointer', 'size', 'pointer'),
  CreateSessionOptions: row(10, 1, 'status', 'pointer'),
  SetSessionExecutionMode: row(13, 1, 'status', 'pointer', 'int'),
  EnableMemPattern: row(16, 1, 'status', 'pointer'),
  DisableMemPattern: row(17, 1, 'status', 'pointer'),
  EnableCpuMemArena: row(18, 1, 'status', 'pointer'),
  DisableCpuMemArena: row(19, 1, 'status', 'pointer'),
  SetSessionLogSeverityLevel: row(22, 1, 'status', 'pointer', 'int'),
  SetSessionGraphOptimizationLevel: row(23, 1, 'status', 'pointer', 'int'),
  SetIntraOpNumThreads: row(24, 1, 'status', 'pointer', 'int'),
  SetInterOpNumThreads: row(25, 1, 'status', 'pointer', 'int'),
  RegisterCustomOpsLibrary: row(29, 1, 'status', 'pointer', 'text', 'pointer'),
  SessionGetInputCount: row(30, 1, 'status', 'pointer', 'pointer'),
  SessionGetOutputCount: row(31, 1, 'status', 'pointer', 'pointer'),
  SessionGetOverridableInitializerCount: row(32, 1, 'status', 'pointer', 'pointer'),
  SessionGetInputTypeInfo: row(33, 1, 'status', 'pointer', 'size', 'pointer'),
  SessionGetOutputTypeInfo: row(34, 1, 'status', 'pointer', 'size', 'pointer'),
  SessionGetOverridableInitializerTypeInfo: row(35, 1, 'status', 'pointer', 'size', 'pointer'),
  SessionGetInputName: row(36, 1, 'status', 'pointer', 'size', 'pointer', 'pointer'),
  SessionGetOutputName: row(37, 1, 'status', 'pointer', 'size', 'pointer', 'pointer'),
  SessionGetOverridableInitializerName: row(38, 1, 'status', 'pointer', 'size', 'pointer', 'pointer'),
  CreateRunOptions: row(39, 1, 'status', 'pointer'),
  RunOptionsSetTerminate: row(46, 1, 'status', 'pointer'),
  RunOptionsUnsetTerminate: row(47, 1, 'status', 'pointer'),
  CreateTensorAsOrtValue: row(48, 1, 'status', 'pointer', 'pointer', 'size', 'int', 'pointer'),
  CreateTensorWithDataAsOrtValue: row(
    49,
    1,
    'status',
    'pointer',
    'pointer',
    'size',
    'pointer',
    'size',
    'int',
    'pointer',
  ),
  GetTensorMutableData: row(51, 1, 'status', 'pointer', 'pointer'),
  FillStringTensor: row(52, 1, 'status', 'pointer', 'pointer', 'size'),
  GetStringTensorDataLength: row(53, 1, 'status', 'pointer', 'pointer'),
  GetStringTensorContent: row(54, 1, 'status', 'pointer', 'pointer', 'size', 'pointer', 'size'),
  CastTypeInfoToTensorInfo: row(55, 1, 'status', 'pointer', 'pointer'),
  GetOnnxTypeFromTypeInfo: row(56, 1, 'status', 'pointer', 'pointer'),
  GetTensorElementType: row(60, 1, 'status', 'pointer', 'pointer'),
  GetDimensionsCount: row(61, 1, 'status', 'pointer', 'pointer'),
  GetDimensions: row(62, 1, 'status', 'pointer', 'pointer', 'size'),
  GetTensorTypeAndShape: row(65, 1, 'status', 'pointer', 'pointer'),
  CreateCpuMemoryInfo: row(69, 1, 'status', 'int', 'int', 'pointer'),
  AllocatorFree: row(76, 1, 'status', 'pointer', 'pointer'),
  GetAllocatorWithDefaultOptions: row(78, 1, 'status', 'pointer'),
  ReleaseEnv: row(92, 1, 'none', 'pointer'),
  ReleaseStatus: row(93, 1, 'none', 'pointer'),
  ReleaseMemoryInfo: row(94, 1, 'none', 'pointer'),
  ReleaseSession: row(95, 1, 'none', 'pointer'),
  ReleaseValue: row(96, 1, 'none', 'pointer'),
  ReleaseRunOptions: row(97, 1, 'none', 'pointer'),
  ReleaseTypeInfo: row(98, 1, 'none', 'pointer'),
  ReleaseTensorTypeAndShapeInfo: row(99, 1, 'none', 'pointer'),
  ReleaseSessionOptions: row(100, 1, 'none', 'pointer'),
  GetAvailableProviders: row(125, 4, 'status', 'pointer', 'pointer'),
  ReleaseAvailableProviders: row(126, 4, 'status', 'pointer', 'int'),
  AddSessionConfigEntry: row(130, 5, 'status', 'pointer', 'text', 'text'),
  AddRunConfigEntry: row(165, 8, 'status', 'pointer', 'text', 'text'),
  SessionOptionsAppendExecutionProvider_TensorRT_V2: row(170, 9, 'status', 'pointer', 'pointer'),
  CreateTensorRTProviderOptions: row(171, 9, 'status', 'pointer'),
  UpdateTensorRTProviderOptions: row(172, 9, 'status', 'pointer', 'texts', 'texts', 'size'),
  ReleaseTensorRTProviderOptions: row(174, 9, 'none', 'pointer'),
  SessionOptionsAppendExecutionProvider_CUDA_V2: row(204, 11, 'status', 'pointer', 'pointer'),
  CreateCUDAProviderOptions: row(205, 11, 'status', 'pointer'),
  UpdateCUDAProviderOptions: row(206, 11, 'status', 'pointer', 'texts', 'texts', 'size'),
  ReleaseCUDAProviderOptions: row(208, 11, 'none', 'pointer'),
  SessionOptionsAppendExecutionProvider: row(216, 12, 'status', 'pointer', 'text', 'texts', 'texts', 'size'),
} as const;

/** The oldest API, and so the oldest library (1.12), that has every row above. */
export const ORT_API_VERSION_MIN = Math.max(...Object.values(ORT_FUNCTIONS).map((entry) => entry.since));

type Arguments<Kinds extends readonly ArgumentKind[]> = {
  -readonly [I in keyof Kinds]: ArgumentTypes[Kinds[I]];
};

export interface NativeFunction<Args extends readonly unknown[], Result> {
  (...args: Args): Result;
  /** The same call on a thread of koffi's; the callback runs on the event loop. */
  async(...args: [...Args, (error: Error | null, result: Result) => void]): void;
}

export type OrtApi = {
  readonly [Name in keyof typeof ORT_FUNCTIONS]: NativeFunction<
    Arguments<(typeof ORT_FUNCTIONS)[Name]['arguments']>,
    ResultTypes[(typeof ORT_FUNCTIONS)[Name]['result']]
  >;
};
