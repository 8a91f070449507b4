// The endpoints of system and CUDA shared memory: status, register, unregister. Bodies are read in Triton's order;
// core/shm/shared-memory.ts decides. Called by http-server.ts.

import type { CudaRegionStatus, SystemRegionStatus } from '../../core/shm/shared-memory.ts';
import { invalidArgument } from '../../domain/status.ts';
import { parseJson } from '../../wire/v2-json/json-reader.ts';
import {
  asString,
  asUnsigned,
  findMember,
  type JsonValue,
  requireMember,
} from '../../wire/v2-json/json-value.ts';
import { quoteJson } from '../../wire/v2-json/json-writer.ts';
import { emptyAnswer, type HttpAnswer, JSON_TYPE, jsonAnswer } from './answer.ts';
import type { HttpServices } from './services.ts';

export interface SharedMemoryCall {
  readonly memory: 'system' | 'cuda';
  readonly action: 'status' | 'register' | 'unregister';
  /** Empty when the target names none. */
  readonly region: string;
  readonly body: Buffer;
}

export async function sharedMemory(services: HttpServices, call: SharedMemoryCall): Promise<HttpAnswer> {
  const memory = services.sharedMemory;
  const isSystem = call.memory === 'system';
  if (call.action === 'status') {
    const rows = isSystem
      ? memory.systemStatus(call.region).map(systemRow)
      : memory.cudaStatus(call.region).map(cudaRow);
    return jsonAnswer(`[${rows.join(',')}]`);
  }
  if (call.action === 'unregister') {
    if (isSystem) memory.unregisterSystem(call.region);
    else await memory.unregisterCuda(call.region);
    return emptyAnswer(200, JSON_TYPE);
  }
  memory.requireAllowed();
  if (call.region === '') {
    throw invalidArgument(`'region name' is necessary to register ${call.memory} shared memory region`);
  }
  const document = parseJson(call.body);
  if (isSystem) registerSystem(services, call.region, document);
  else await registerCuda(services, call.region, document);
  return emptyAnswer(200, JSON_TYPE);
}

function registerSystem(services: HttpServices, name: string, document: JsonValue): void {
  const key = asString(requireField(document, 'key'), '');
  const offsetValue = findMember(document, 'offset');
  const offset = offsetValue === undefined ? 0 : asUnsigned(offsetValue, '');
  const byteSize = asUnsigned(requireField(document, 'byte_size'), '');
  services.sharedMemory.registerSystem({ name, key, offset, byteSize });
}

function registerCuda(services: HttpServices, name: string, document: JsonValue): Promise<void> {
  const text = asString(requireMember(requireField(document, 'raw_handle'), 'b64', ''), '');
  const byteSize = asUnsigned(requireMember(document, 'byte_size', ''), '');
  const deviceId = Number(asUnsigned(requireMember(document, 'device_id', ''), ''));
  const rawHandle = Buffer.from(text, 'base64');
  return services.sharedMemory.registerCuda({ name, rawHandle, deviceId, byteSize });
}

function requireField(document: JsonValue, name: string): JsonValue {
  const value = findMember(document, name);
  if (value === undefined) throw invalidArgument(`Shared memory register request has no '${name}' field`);
  return value;
}

function systemRow(region: SystemRegionStatus): string {
  const { name, key, offset, byteSize } = region;
  return `{"name":${quoteJson(name)},"key":${quoteJson(key)},"offset":${offset},"byte_size":${byteSize}}`;
}

function cudaRow(region: CudaRegionStatus): string {
  return `{"name":${quoteJson(region.name)},"device_id":${region.deviceId},"byte_size":${region.byteSize}}`;
}
