// The RPCs of shared memory and of trace settings. What they do is in core/shm and core/trace.

import { parseTraceSettings } from '../../core/trace/parse-trace-update.ts';
import type {
  CudaSharedMemoryRegisterRequest,
  MessageTypes,
  RegionName,
  SystemRegion,
  TraceSettings,
} from '../../wire/v2-proto/messages.ts';
import type { GrpcServices } from './services.ts';

type Empty = Record<string, never>;

export function systemStatus(
  services: GrpcServices,
  request: RegionName,
): MessageTypes['SystemSharedMemoryStatusResponse'] {
  const regions = services.sharedMemory.systemStatus(request.name);
  return {
    regions: Object.fromEntries(
      regions.map(({ name, key, offset, byteSize }) => [name, { name, key, offset, byte_size: byteSize }]),
    ),
  };
}

export function systemRegister(services: GrpcServices, request: SystemRegion): Empty {
  const { name, key, offset, byte_size: byteSize } = request;
  services.sharedMemory.registerSystem({ name, key, offset, byteSize });
  return {};
}

export function systemUnregister(services: GrpcServices, request: RegionName): Empty {
  services.sharedMemory.unregisterSystem(request.name);
  return {};
}

export function cudaStatus(
  services: GrpcServices,
  request: RegionName,
): MessageTypes['CudaSharedMemoryStatusResponse'] {
  const regions = services.sharedMemory.cudaStatus(request.name);
  return {
    regions: Object.fromEntries(
      regions.map(({ name, deviceId, byteSize }) => [
        name,
        { name, device_id: deviceId, byte_size: byteSize },
      ]),
    ),
  };
}

export async function cudaRegister(
  services: GrpcServices,
  request: CudaSharedMemoryRegisterRequest,
): Promise<Empty> {
  const { name, raw_handle: rawHandle, device_id: deviceId, byte_size: byteSize } = request;
  await services.sharedMemory.registerCuda({ name, rawHandle, deviceId: Number(deviceId), byteSize });
  return {};
}

export async function cudaUnregister(services: GrpcServices, request: RegionName): Promise<Empty> {
  await services.sharedMemory.unregisterCuda(request.name);
  return {};
}

export function traceSetting(
  services: GrpcServices,
  request: MessageTypes['TraceSettingRequest'],
): TraceSettings {
  const texts = new Map(Object.entries(request.settings).map(([name, { value }]) => [name, value]));
  const view = services.trace.exchange(request.model_name, () => parseTraceSettings(texts));
  return {
    settings: Object.fromEntries(view.map(([name, values]) => [name, { value: [...values] }])),
  };
}
