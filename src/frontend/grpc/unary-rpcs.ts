// The small unary RPCs: health, metadata, config, statistics, repository, logging. One function each, from the request
// message to the response message; rpc-table.ts says under which name. Shared memory and trace have files of their own.

import { isReadyNow } from '../../core/model/served-model.ts';
import { LATEST_VERSION } from '../../core/repository/catalog.ts';
import type { FileOverride } from '../../core/repository/file-override.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { invalidArgument, unsupported } from '../../domain/status.ts';
import type { LogFormat, LogSettingsUpdate } from '../../lib/logger.ts';
import type {
  LogSettings,
  LogSettingValue,
  MessageTypes,
  ModelMetadataResponse,
  NameAndVersion,
  RepositoryIndexRequest,
  RepositoryModelRequest,
} from '../../wire/v2-proto/messages.ts';
import { EXTENSIONS, TRITON_VERSION } from '../services.ts';
import { versionOf } from './model-version.ts';
import type { GrpcServices } from './services.ts';
import { statisticsMessage } from './statistics-message.ts';

export function serverLive(services: GrpcServices): MessageTypes['ServerLiveResponse'] {
  return { live: services.isLive() };
}

export function serverReady(services: GrpcServices): MessageTypes['ServerReadyResponse'] {
  return { ready: services.isReady() };
}

export async function modelReady(
  services: GrpcServices,
  request: NameAndVersion,
): Promise<MessageTypes['ModelReadyResponse']> {
  services.isLive();
  const version = versionOf(services.catalog, { model: request.name, version: request.version });
  try {
    return { ready: await isReadyNow(services.catalog.find(request.name, version)) };
  } catch {
    return { ready: false };
  }
}

export function serverMetadata(services: GrpcServices): MessageTypes['ServerMetadataResponse'] {
  return { name: services.serverId, version: TRITON_VERSION, extensions: [...EXTENSIONS] };
}

export function modelMetadata(services: GrpcServices, request: NameAndVersion): ModelMetadataResponse {
  const version = versionOf(services.catalog, { model: request.name, version: request.version });
  const model = services.catalog.find(request.name, version);
  const versions =
    version === LATEST_VERSION
      ? services.catalog.readyVersions(request.name).map((ready) => String(ready.version))
      : [String(version)];
  const tensor = ({ name, datatype, dims }: TensorSpec) => ({
    name,
    datatype,
    shape: model.maxBatchSize > 0 ? [-1, ...dims] : [...dims],
  });
  return {
    name: model.name,
    versions,
    platform: model.config.platform === '' ? model.config.backend : model.config.platform,
    inputs: model.inputs.map(tensor),
    outputs: model.outputs.map(tensor),
  };
}

export function modelConfig(
  services: GrpcServices,
  request: NameAndVersion,
): MessageTypes['ModelConfigResponse'] {
  const version = versionOf(services.catalog, { model: request.name, version: request.version });
  return { config: services.catalog.find(request.name, version).config };
}

export function modelStatistics(
  services: GrpcServices,
  request: NameAndVersion,
): MessageTypes['ModelStatisticsResponse'] {
  const { catalog } = services;
  const version = versionOf(services.catalog, { model: request.name, version: request.version });
  const models =
    request.name === ''
      ? catalog.names().flatMap((name) => catalog.readyVersions(name))
      : catalog.findForStatistics(request.name, version);
  return { model_stats: models.map((model) => statisticsMessage(model.stats.snapshot())) };
}

export async function repositoryIndex(
  services: GrpcServices,
  request: RepositoryIndexRequest,
): Promise<MessageTypes['RepositoryIndexResponse']> {
  refuseRepositoryName(request.repository_name);
  const rows = await services.index(request.ready);
  return {
    models: rows.map((row) => ({
      name: row.name,
      version: row.version === undefined ? '' : String(row.version),
      state: row.state ?? '',
      reason: row.reason,
    })),
  };
}

function refuseRepositoryName(name: string): void {
  if (name !== '') throw unsupported("'repository_name' specification is not supported");
}

export async function repositoryModelLoad(
  services: GrpcServices,
  request: RepositoryModelRequest,
): Promise<Record<string, never>> {
  refuseRepositoryName(request.repository_name);
  const files: FileOverride[] = [];
  let configJson: string | undefined;
  for (const [name, parameter] of Object.entries(request.parameters)) {
    if (name === 'config') {
      if (parameter.string_param === undefined) throw wrongLoadParameter(name, 'string_param');
      configJson = parameter.string_param;
    } else if (name.startsWith('file:')) {
      if (parameter.bytes_param === undefined) throw wrongLoadParameter(name, 'bytes_param');
      files.push({ path: name.slice('file:'.length), content: parameter.bytes_param });
    } else throw invalidArgument(`unrecognized load parameter '${name}'.`);
  }
  await services.load(request.model_name, { configJson, files });
  return {};
}

function wrongLoadParameter(name: string, expected: string): Error {
  return invalidArgument(`invalid value type for load parameter '${name}', expected ${expected}.`);
}

export async function repositoryModelUnload(
  services: GrpcServices,
  request: RepositoryModelRequest,
): Promise<Record<string, never>> {
  refuseRepositoryName(request.repository_name);
  const dependents = request.parameters.unload_dependents;
  if (dependents !== undefined && dependents.bool_param === undefined) {
    throw invalidArgument("invalid value type for 'unload_dependents' parameter, expected bool_param.");
  }
  await services.unload(request.model_name, dependents?.bool_param ?? false);
  return {};
}

export function logSettings(services: GrpcServices, request: LogSettings): LogSettings {
  const { settings } = request;
  if (settings.log_file !== undefined) {
    throw unsupported('log file location can not be updated through network protocol');
  }
  const isInfo = booleanOf(settings, 'log_info');
  const isWarning = booleanOf(settings, 'log_warning');
  const isError = booleanOf(settings, 'log_error');
  const verboseLevel = verboseOf(settings.log_verbose_level);
  const format = formatOf(settings.log_format);
  const update: LogSettingsUpdate = {
    ...(isInfo === undefined ? {} : { isInfo }),
    ...(isWarning === undefined ? {} : { isWarning }),
    ...(isError === undefined ? {} : { isError }),
    ...(verboseLevel === undefined ? {} : { verboseLevel }),
    ...(format === undefined ? {} : { format }),
  };
  services.logger.update(update);
  const now = services.logger.settings();
  return {
    settings: {
      log_file: { string_param: now.logFile },
      log_info: { bool_param: now.isInfo },
      log_warning: { bool_param: now.isWarning },
      log_error: { bool_param: now.isError },
      log_verbose_level: { uint32_param: now.verboseLevel },
      log_format: { string_param: now.format },
    },
  };
}

function booleanOf(settings: Readonly<Record<string, LogSettingValue>>, name: string): boolean | undefined {
  const value = settings[name];
  if (value !== undefined && value.bool_param === undefined) {
    throw invalidArgument(`expect boolean for '${name}'`);
  }
  return value?.bool_param;
}

function verboseOf(value: LogSettingValue | undefined): number | undefined {
  if (value !== undefined && value.uint32_param === undefined) {
    throw invalidArgument("expect int32 for 'log_verbose_level'");
  }
  return value?.uint32_param;
}

function formatOf(value: LogSettingValue | undefined): LogFormat | undefined {
  if (value === undefined) return undefined;
  const format = value.string_param;
  if (format === undefined) throw invalidArgument("expect string for 'log_format'");
  if (format === 'default' || format === 'ISO8601') return format;
  throw invalidArgument(`invalid argument for log_format, got: ${format}`);
}
