// The messages of the small RPCs as types, field names as in grpc_service.proto. What decodeMessage returns and
// encodeMessage takes. Inference has types of its own (decode-infer-request.ts).

import type { ModelConfig } from '../../domain/model-config.ts';

/** A number where that is exact, else a bigint. */
export type Int64 = number | bigint;

type Empty = Record<string, never>;

export interface NameAndVersion {
  name: string;
  version: string;
}

export interface ServerMetadataResponse {
  name: string;
  version: string;
  extensions: string[];
}

export interface TensorMetadata {
  name: string;
  datatype: string;
  shape: Int64[];
}

export interface ModelMetadataResponse {
  name: string;
  versions: string[];
  platform: string;
  inputs: TensorMetadata[];
  outputs: TensorMetadata[];
}

export interface StatisticDuration {
  count: Int64;
  ns: Int64;
}

export interface InferStatistics {
  success?: StatisticDuration;
  fail?: StatisticDuration;
  queue?: StatisticDuration;
  compute_input?: StatisticDuration;
  compute_infer?: StatisticDuration;
  compute_output?: StatisticDuration;
  cache_hit?: StatisticDuration;
  cache_miss?: StatisticDuration;
}

export interface InferResponseStatistics {
  compute_infer?: StatisticDuration;
  compute_output?: StatisticDuration;
  success?: StatisticDuration;
  fail?: StatisticDuration;
  empty_response?: StatisticDuration;
  cancel?: StatisticDuration;
}

export interface InferBatchStatistics {
  batch_size: Int64;
  compute_input?: StatisticDuration;
  compute_infer?: StatisticDuration;
  compute_output?: StatisticDuration;
}

export interface MemoryUsage {
  type: string;
  id: Int64;
  byte_size: Int64;
}

export interface ModelStatistics {
  name: string;
  version: string;
  last_inference: Int64;
  inference_count: Int64;
  execution_count: Int64;
  inference_stats?: InferStatistics;
  batch_stats: InferBatchStatistics[];
  memory_usage: MemoryUsage[];
  response_stats: Record<string, InferResponseStatistics>;
}

/** At most one is set. */
export interface ModelRepositoryParameter {
  bool_param?: boolean;
  int64_param?: Int64;
  string_param?: string;
  bytes_param?: Buffer;
}

export interface RepositoryIndexRequest {
  repository_name: string;
  ready: boolean;
}

export interface ModelIndex {
  name: string;
  version: string;
  state: string;
  reason: string;
}

/** Of RepositoryModelLoad and RepositoryModelUnload. */
export interface RepositoryModelRequest {
  repository_name: string;
  model_name: string;
  parameters: Record<string, ModelRepositoryParameter>;
}

export interface RegionName {
  /** Empty means all regions. */
  name: string;
}

export interface SystemRegion {
  name: string;
  key: string;
  offset: Int64;
  byte_size: Int64;
}

export interface CudaRegion {
  name: string;
  device_id: Int64;
  byte_size: Int64;
}

export interface CudaSharedMemoryRegisterRequest extends CudaRegion {
  raw_handle: Buffer;
}

export interface TraceSettings {
  settings: Record<string, { value: string[] }>;
}

/** At most one is set. */
export interface LogSettingValue {
  bool_param?: boolean;
  uint32_param?: number;
  string_param?: string;
}

export interface LogSettings {
  settings: Record<string, LogSettingValue>;
}

export type ServingStatus = 'UNKNOWN' | 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

/** At most one of the questions is set. */
export interface ReflectionRequest {
  host: string;
  file_by_filename?: string;
  file_containing_symbol?: string;
  file_containing_extension?: { containing_type: string; extension_number: number };
  all_extension_numbers_of_type?: string;
  list_services?: string;
}

/** One of the four answers is set. */
export interface ReflectionResponse {
  valid_host: string;
  original_request?: ReflectionRequest;
  file_descriptor_response?: { file_descriptor_proto: Buffer[] };
  all_extension_numbers_response?: { base_type_name: string; extension_number: number[] };
  list_services_response?: { service: { name: string }[] };
  error_response?: { error_code: number; error_message: string };
}

/** Name in the tables → type. */
export interface MessageTypes {
  ServerLiveRequest: Empty;
  ServerLiveResponse: { live: boolean };
  ServerReadyRequest: Empty;
  ServerReadyResponse: { ready: boolean };
  ModelReadyRequest: NameAndVersion;
  ModelReadyResponse: { ready: boolean };
  ServerMetadataRequest: Empty;
  ServerMetadataResponse: ServerMetadataResponse;
  ModelMetadataRequest: NameAndVersion;
  ModelMetadataResponse: ModelMetadataResponse;
  ModelConfigRequest: NameAndVersion;
  ModelConfigResponse: { config?: ModelConfig };
  ModelConfig: ModelConfig;
  ModelStatisticsRequest: NameAndVersion;
  ModelStatisticsResponse: { model_stats: ModelStatistics[] };
  RepositoryIndexRequest: RepositoryIndexRequest;
  RepositoryIndexResponse: { models: ModelIndex[] };
  RepositoryModelLoadRequest: RepositoryModelRequest;
  RepositoryModelLoadResponse: Empty;
  RepositoryModelUnloadRequest: RepositoryModelRequest;
  RepositoryModelUnloadResponse: Empty;
  SystemSharedMemoryStatusRequest: RegionName;
  SystemSharedMemoryStatusResponse: { regions: Record<string, SystemRegion> };
  SystemSharedMemoryRegisterRequest: SystemRegion;
  SystemSharedMemoryRegisterResponse: Empty;
  SystemSharedMemoryUnregisterRequest: RegionName;
  SystemSharedMemoryUnregisterResponse: Empty;
  CudaSharedMemoryStatusRequest: RegionName;
  CudaSharedMemoryStatusResponse: { regions: Record<string, CudaRegion> };
  CudaSharedMemoryRegisterRequest: CudaSharedMemoryRegisterRequest;
  CudaSharedMemoryRegisterResponse: Empty;
  CudaSharedMemoryUnregisterRequest: RegionName;
  CudaSharedMemoryUnregisterResponse: Empty;
  TraceSettingRequest: TraceSettings & { model_name: string };
  TraceSettingResponse: TraceSettings;
  LogSettingsRequest: LogSettings;
  LogSettingsResponse: LogSettings;
  'grpc.health.v1.HealthCheckRequest': { service: string };
  'grpc.health.v1.HealthCheckResponse': { status: ServingStatus };
  'grpc.reflection.v1.ServerReflectionRequest': ReflectionRequest;
  'grpc.reflection.v1.ServerReflectionResponse': ReflectionResponse;
  'grpc.reflection.v1alpha.ServerReflectionRequest': ReflectionRequest;
  'grpc.reflection.v1alpha.ServerReflectionResponse': ReflectionResponse;
}
