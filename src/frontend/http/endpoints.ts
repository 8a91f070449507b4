// Every HTTP endpoint but infer: health, metadata, config, statistics, repository and logging.

import { isReadyNow } from '../../core/model/served-model.ts';
import { LATEST_VERSION } from '../../core/repository/catalog.ts';
import type { FileOverride } from '../../core/repository/file-override.ts';
import type { LoadOverride } from '../../core/repository/find-model.ts';
import { internal, unavailable, unsupported } from '../../domain/status.ts';
import type { LogFormat, LogSettingsUpdate } from '../../lib/logger.ts';
import {
  logSettingsDocument,
  modelMetadataDocument,
  repositoryIndexDocument,
  serverMetadataDocument,
  statisticsDocument,
} from '../../wire/v2-json/documents.ts';
import { parseJson } from '../../wire/v2-json/json-reader.ts';
import {
  asBoolean,
  asString,
  asUnsigned,
  findMember,
  type JsonValue,
  memberNames,
} from '../../wire/v2-json/json-value.ts';
import { modelConfigToJson } from '../../wire/v2-json/model-config-json.ts';
import { EXTENSIONS, TRITON_VERSION } from '../services.ts';
import { emptyAnswer, errorAnswer, type HttpAnswer, JSON_TYPE, jsonAnswer, TEXT_TYPE } from './answer.ts';
import type { HttpServices } from './services.ts';
import { versionOf } from './version.ts';

export interface ModelTarget {
  readonly model: string;
  readonly version: string;
}

export function serverMetadata(services: HttpServices): HttpAnswer {
  return jsonAnswer(
    serverMetadataDocument({ name: services.serverId, version: TRITON_VERSION, extensions: EXTENSIONS }),
  );
}

export function health(services: HttpServices, what: 'live' | 'ready'): HttpAnswer {
  const isGood = what === 'live' ? services.isLive() : services.isReady();
  return emptyAnswer(isGood ? 200 : 400, TEXT_TYPE);
}

export async function modelReady(services: HttpServices, target: ModelTarget): Promise<HttpAnswer> {
  services.isLive();
  if (await isModelReady(services, target)) return emptyAnswer(200, TEXT_TYPE);
  return errorAnswer(400, 'Model version not ready');
}

async function isModelReady(services: HttpServices, target: ModelTarget): Promise<boolean> {
  const version = versionOf(services.catalog, target);
  try {
    return await isReadyNow(services.catalog.find(target.model, version));
  } catch {
    return false;
  }
}

export function modelMetadata(services: HttpServices, target: ModelTarget): HttpAnswer {
  const version = versionOf(services.catalog, target);
  const model = services.catalog.find(target.model, version);
  const versions =
    version === LATEST_VERSION
      ? services.catalog.readyVersions(target.model).map((ready) => ready.version)
      : [version];
  const platform = model.config.platform === '' ? model.config.backend : model.config.platform;
  return jsonAnswer(modelMetadataDocument(model, { versions, platform }));
}

export function modelConfig(services: HttpServices, target: ModelTarget): HttpAnswer {
  return jsonAnswer(
    modelConfigToJson(services.catalog.find(target.model, versionOf(services.catalog, target)).config),
  );
}

export function modelStatistics(services: HttpServices, target: ModelTarget): HttpAnswer {
  const models = services.catalog.findForStatistics(target.model, versionOf(services.catalog, target));
  return jsonAnswer(statisticsDocument(models.map((model) => model.stats.snapshot())));
}

export function allStatistics(services: HttpServices): HttpAnswer {
  const models = services.catalog.names().flatMap((name) => services.catalog.readyVersions(name));
  return jsonAnswer(statisticsDocument(models.map((model) => model.stats.snapshot())));
}

export async function repositoryIndex(services: HttpServices, body: Buffer): Promise<HttpAnswer> {
  let isReadyOnly = false;
  if (body.length > 0) {
    const ready = findMember(parseJson(body), 'ready');
    if (ready !== undefined) isReadyOnly = asBoolean(ready, '');
  }
  const rows = await services.index(isReadyOnly);
  return jsonAnswer(
    repositoryIndexDocument(
      rows.map((row) => ({
        name: row.name,
        version: row.state === undefined ? undefined : row.version === undefined ? '' : String(row.version),
        state: row.state,
        reason: row.reason === '' ? undefined : row.reason,
      })),
    ),
  );
}

export async function control(
  services: HttpServices,
  call: { action: 'load' | 'unload'; model: string; repository: string; body: Buffer },
): Promise<HttpAnswer> {
  if (call.repository !== '') throw unsupported("'repository_name' specification is not supported");
  if (call.action === 'load') await services.load(call.model, parseOverride(call.body));
  else await services.unload(call.model, hasDependents(call.body));
  return emptyAnswer(200, JSON_TYPE);
}

/** Triton unloads whatever the body says; only the boolean true asks for more. */
function hasDependents(body: Buffer): boolean {
  try {
    return findMember(findMember(parseJson(body), 'parameters'), 'unload_dependents') === true;
  } catch {
    return false;
  }
}

function parseOverride(body: Buffer): LoadOverride {
  const files: FileOverride[] = [];
  let configJson: string | undefined;
  if (body.length === 0) return { configJson, files };
  const parameters = findMember(parseJson(body), 'parameters');
  if (parameters === undefined) return { configJson, files };
  for (const name of memberNames(parameters, '')) {
    const text = asString(findMember(parameters, name)!, '');
    if (name === 'config') configJson = text;
    else if (name.startsWith('file:')) {
      files.push({ path: name.slice('file:'.length), content: Buffer.from(text, 'base64') });
    } else throw internal('unexpected error on creating Triton parameter');
  }
  return { configJson, files };
}

export function logging(services: HttpServices, body: Buffer | undefined): HttpAnswer {
  if (body !== undefined) services.logger.update(parseLogSettings(parseJson(body)));
  return jsonAnswer(logSettingsDocument(services.logger.settings()));
}

function parseLogSettings(document: JsonValue): LogSettingsUpdate {
  if (member(document, 'log_file') !== undefined) {
    throw unsupported('log file location can not be updated through network protocol');
  }
  const isInfo = member(document, 'log_info');
  const isWarning = member(document, 'log_warning');
  const isError = member(document, 'log_error');
  const verbose = member(document, 'log_verbose_level');
  const format = member(document, 'log_format');
  return {
    ...(isInfo === undefined ? {} : { isInfo: asBoolean(isInfo, '') }),
    ...(isWarning === undefined ? {} : { isWarning: asBoolean(isWarning, '') }),
    ...(isError === undefined ? {} : { isError: asBoolean(isError, '') }),
    ...(verbose === undefined ? {} : { verboseLevel: Number(asUnsigned(verbose, '')) }),
    ...(format === undefined ? {} : { format: parseLogFormat(asString(format, '')) }),
  };
}

/** A member that is null changes nothing. */
function member(document: JsonValue, name: string): JsonValue | undefined {
  return findMember(document, name) ?? undefined;
}

function parseLogFormat(format: string): LogFormat {
  if (format === 'default' || format === 'ISO8601') return format;
  throw unavailable(`invalid argument for --log_format, got: ${format}`);
}
