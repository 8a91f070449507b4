// What a model in JavaScript or TypeScript imports as `nereid/model`; docs/node-models.md tells how it is used. Types
// and small values alone: what runs the model is src/backends/node.

export type { DataType } from '../../domain/datatype.ts';
export type { ModelConfig } from '../../domain/model-config.ts';
export type { StatusCode } from '../../domain/status.ts';
export {
  type DynamicBatchingSettings,
  defineModel,
  type ExecuteAnswer,
  type ModelDefinition,
  type ModelSettings,
  type RequestAnswer,
  type TensorSettings,
} from './define-model.ts';
export type {
  ControlOptions,
  Counter,
  Gauge,
  Histogram,
  InferOptions,
  InferResult,
  MetricOptions,
  ModelContext,
  ModelLog,
  ModelMetrics,
} from './model-context.ts';
export { ModelError } from './model-error.ts';
export type { InferRequest, InferResponse, ParameterValue, ResponseSender } from './model-request.ts';
export { Tensor, type TensorData, type TypedArrayOf } from './tensor.ts';
