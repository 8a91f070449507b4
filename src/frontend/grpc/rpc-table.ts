// Which function answers which RPC, and the restricted category that it belongs to. Paths and message types come from
// proto/ through the generated method table.

import { internal, StatusError } from '../../domain/status.ts';
import { decodeMessage } from '../../wire/v2-proto/decode-message.ts';
import { encodeMessage } from '../../wire/v2-proto/encode-message.ts';
import { METHODS } from '../../wire/v2-proto/generated/methods.ts';
import { unparsableRequest } from '../../wire/v2-proto/grpc-status.ts';
import type { MessageTypes } from '../../wire/v2-proto/messages.ts';
import type { RestrictedCategory } from '../services.ts';
import { type CallHandler, type GrpcCall, outgoing } from './grpc-call.ts';
import { HealthWatch, healthCheck } from './health.ts';
import * as memoryAndTrace from './memory-and-trace-rpcs.ts';
import { ModelInfer } from './model-infer.ts';
import { ModelStreamInfer } from './model-stream-infer.ts';
import { Reflection } from './reflection.ts';
import type { GrpcServices } from './services.ts';
import * as unary from './unary-rpcs.ts';

export interface Rpc {
  /** Undefined: never restricted. */
  readonly category: RestrictedCategory | undefined;
  open(services: GrpcServices, call: GrpcCall): CallHandler;
}

type Unary<Request extends keyof MessageTypes, Response extends keyof MessageTypes> = (
  services: GrpcServices,
  request: MessageTypes[Request],
) => MessageTypes[Response] | Promise<MessageTypes[Response]>;

function small<Request extends keyof MessageTypes, Response extends keyof MessageTypes>(
  category: RestrictedCategory,
  types: readonly [Request, Response],
  answer: Unary<Request, Response>,
): Rpc {
  return { category, open: (services, call) => new SmallCall(services, call, types, answer) };
}

class SmallCall<Request extends keyof MessageTypes, Response extends keyof MessageTypes>
  implements CallHandler
{
  readonly #services: GrpcServices;
  readonly #call: GrpcCall;
  readonly #types: readonly [Request, Response];
  readonly #answer: Unary<Request, Response>;
  #isStarted = false;

  constructor(
    services: GrpcServices,
    call: GrpcCall,
    types: readonly [Request, Response],
    answer: Unary<Request, Response>,
  ) {
    this.#services = services;
    this.#call = call;
    this.#types = types;
    this.#answer = answer;
  }

  onMessage(pieces: readonly Buffer[]): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#run(Buffer.concat(pieces));
  }

  onHalfClose(): void {
    if (!this.#isStarted) this.#call.fail(internal('Unable to parse request'));
  }

  async #run(bytes: Buffer): Promise<void> {
    const [requestType, responseType] = this.#types;
    try {
      const request = decodeMessage(requestType, bytes);
      const response = await this.#answer(this.#services, request);
      this.#call.respond(outgoing(encodeMessage(responseType, response)));
    } catch (thrown) {
      const error = unparsableRequest(thrown) ?? StatusError.from(thrown);
      if (error.cause !== undefined) this.#services.logger.error(`gRPC ${requestType}: ${error.stack}`);
      this.#call.fail(error);
    }
  }
}

/** By the name of the method in proto/grpc_service.proto. */
const INFERENCE_RPCS: Readonly<Record<string, Rpc>> = {
  ServerLive: small('health', ['ServerLiveRequest', 'ServerLiveResponse'], unary.serverLive),
  ServerReady: small('health', ['ServerReadyRequest', 'ServerReadyResponse'], unary.serverReady),
  ModelReady: small('health', ['ModelReadyRequest', 'ModelReadyResponse'], unary.modelReady),
  ServerMetadata: small(
    'metadata',
    ['ServerMetadataRequest', 'ServerMetadataResponse'],
    unary.serverMetadata,
  ),
  ModelMetadata: small('metadata', ['ModelMetadataRequest', 'ModelMetadataResponse'], unary.modelMetadata),
  ModelInfer: { category: 'inference', open: (services, call) => new ModelInfer(services, call) },
  ModelStreamInfer: { category: 'inference', open: (services, call) => new ModelStreamInfer(services, call) },
  ModelConfig: small('model-config', ['ModelConfigRequest', 'ModelConfigResponse'], unary.modelConfig),
  ModelStatistics: small(
    'statistics',
    ['ModelStatisticsRequest', 'ModelStatisticsResponse'],
    unary.modelStatistics,
  ),
  RepositoryIndex: small(
    'model-repository',
    ['RepositoryIndexRequest', 'RepositoryIndexResponse'],
    unary.repositoryIndex,
  ),
  RepositoryModelLoad: small(
    'model-repository',
    ['RepositoryModelLoadRequest', 'RepositoryModelLoadResponse'],
    unary.repositoryModelLoad,
  ),
  RepositoryModelUnload: small(
    'model-repository',
    ['RepositoryModelUnloadRequest', 'RepositoryModelUnloadResponse'],
    unary.repositoryModelUnload,
  ),
  SystemSharedMemoryStatus: small(
    'shared-memory',
    ['SystemSharedMemoryStatusRequest', 'SystemSharedMemoryStatusResponse'],
    memoryAndTrace.systemStatus,
  ),
  SystemSharedMemoryRegister: small(
    'shared-memory',
    ['SystemSharedMemoryRegisterRequest', 'SystemSharedMemoryRegisterResponse'],
    memoryAndTrace.systemRegister,
  ),
  SystemSharedMemoryUnregister: small(
    'shared-memory',
    ['SystemSharedMemoryUnregisterRequest', 'SystemSharedMemoryUnregisterResponse'],
    memoryAndTrace.systemUnregister,
  ),
  CudaSharedMemoryStatus: small(
    'shared-memory',
    ['CudaSharedMemoryStatusRequest', 'CudaSharedMemoryStatusResponse'],
    memoryAndTrace.cudaStatus,
  ),
  CudaSharedMemoryRegister: small(
    'shared-memory',
    ['CudaSharedMemoryRegisterRequest', 'CudaSharedMemoryRegisterResponse'],
    memoryAndTrace.cudaRegister,
  ),
  CudaSharedMemoryUnregister: small(
    'shared-memory',
    ['CudaSharedMemoryUnregisterRequest', 'CudaSharedMemoryUnregisterResponse'],
    memoryAndTrace.cudaUnregister,
  ),
  TraceSetting: small('trace', ['TraceSettingRequest', 'TraceSettingResponse'], memoryAndTrace.traceSetting),
  LogSettings: small('logging', ['LogSettingsRequest', 'LogSettingsResponse'], unary.logSettings),
};

const HEALTH_RPCS: Readonly<Record<string, Rpc>> = {
  Check: small(
    'health',
    ['grpc.health.v1.HealthCheckRequest', 'grpc.health.v1.HealthCheckResponse'],
    healthCheck,
  ),
  Watch: { category: 'health', open: (services, call) => new HealthWatch(services, call) },
};

/** Undefined: no such method. */
export function findRpc(path: string): Rpc | undefined {
  return RPCS.get(path);
}

const RPCS: ReadonlyMap<string, Rpc> = new Map(
  METHODS.map((method) => {
    if (method.service === 'inference.GRPCInferenceService') {
      return [method.path, INFERENCE_RPCS[method.name]!] as const;
    }
    if (method.service === 'grpc.health.v1.Health') return [method.path, HEALTH_RPCS[method.name]!] as const;
    const { requestType, responseType } = method;
    const rpc: Rpc = {
      category: undefined,
      open: (_services, call) => new Reflection(call, { requestType, responseType }),
    };
    return [method.path, rpc] as const;
  }),
);
