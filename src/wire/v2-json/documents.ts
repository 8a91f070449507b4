// The small JSON documents of the HTTP API: metadata, repository index, statistics, log settings, errors.
// Members come in Triton's order and without blanks; the model configuration has a file of its own.

import type { ModelView, TensorSpec } from '../../domain/model-view.ts';
import type { DurationSnapshot, ModelStatisticsSnapshot } from '../../domain/statistics.ts';
import { quoteJson } from './json-writer.ts';

export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

export interface RepositoryIndexEntry {
  readonly name: string;
  /** Absent, as state and reason, for a model that was never loaded. */
  readonly version?: string | undefined;
  readonly state?: string | undefined;
  readonly reason?: string | undefined;
}

export interface LogSettings {
  readonly logFile: string;
  readonly isInfo: boolean;
  readonly isWarning: boolean;
  readonly isError: boolean;
  readonly verboseLevel: number;
  readonly format: string;
}

export function errorDocument(message: string): string {
  return `{"error":${quoteJson(message)}}`;
}

export function serverMetadataDocument(metadata: ServerMetadata): string {
  const extensions = metadata.extensions.map(quoteJson).join(',');
  return `{"name":${quoteJson(metadata.name)},"version":${quoteJson(metadata.version)},"extensions":[${extensions}]}`;
}

/** `versions` are the ready ones, ascending; `platform` is the config's, or its backend when empty. */
export function modelMetadataDocument(
  model: ModelView,
  options: { versions: readonly number[]; platform: string },
): string {
  const tensors = (specs: readonly TensorSpec[]) => specs.map((spec) => tensorSpec(spec, model)).join(',');
  const versions = options.versions.map((version) => `"${version}"`).join(',');
  return (
    `{"name":${quoteJson(model.name)},"versions":[${versions}],"platform":${quoteJson(options.platform)},` +
    `"inputs":[${tensors(model.inputs)}],"outputs":[${tensors(model.outputs)}]}`
  );
}

function tensorSpec(spec: TensorSpec, model: ModelView): string {
  const shape = model.maxBatchSize > 0 ? [-1, ...spec.dims] : spec.dims;
  return `{"name":${quoteJson(spec.name)},"datatype":"${spec.datatype}","shape":[${shape.join(',')}]}`;
}

export function repositoryIndexDocument(entries: readonly RepositoryIndexEntry[]): string {
  return `[${entries.map(indexEntry).join(',')}]`;
}

function indexEntry(entry: RepositoryIndexEntry): string {
  const members = [`"name":${quoteJson(entry.name)}`];
  if (entry.version !== undefined) members.push(`"version":${quoteJson(entry.version)}`);
  if (entry.state !== undefined) members.push(`"state":${quoteJson(entry.state)}`);
  if (entry.reason !== undefined && entry.reason !== '') members.push(`"reason":${quoteJson(entry.reason)}`);
  return `{${members.join(',')}}`;
}

export function statisticsDocument(models: readonly ModelStatisticsSnapshot[]): string {
  return `{"model_stats":[${models.map(modelStatistics).join(',')}]}`;
}

function modelStatistics(model: ModelStatisticsSnapshot): string {
  const inference = durations([
    ['success', model.success],
    ['fail', model.fail],
    ['queue', model.queue],
    ['compute_input', model.computeInput],
    ['compute_infer', model.computeInfer],
    ['compute_output', model.computeOutput],
    ['cache_hit', model.cacheHit],
    ['cache_miss', model.cacheMiss],
  ]);
  const members = [
    `"name":${quoteJson(model.name)}`,
    `"version":"${model.version}"`,
    `"last_inference":${model.lastInferenceMs}`,
    `"inference_count":${model.inferenceCount}`,
    `"execution_count":${model.executionCount}`,
    `"inference_stats":{${inference}}`,
    `"response_stats":{${responseStatistics(model)}}`,
    `"batch_stats":[${batchStatistics(model)}]`,
    `"memory_usage":[${memoryUsage(model)}]`,
  ];
  return `{${members.join(',')}}`;
}

function durations(members: readonly (readonly [string, DurationSnapshot])[]): string {
  return members.map(([name, { count, ns }]) => `"${name}":{"count":${count},"ns":${ns}}`).join(',');
}

function responseStatistics(model: ModelStatisticsSnapshot): string {
  return Object.entries(model.responseStats)
    .map(([index, response]) => {
      const members = durations([
        ['compute_infer', response.computeInfer],
        ['compute_output', response.computeOutput],
        ['success', response.success],
        ['fail', response.fail],
        ['empty_response', response.emptyResponse],
        ['cancel', response.cancel],
      ]);
      return `${quoteJson(index)}:{${members}}`;
    })
    .join(',');
}

function batchStatistics(model: ModelStatisticsSnapshot): string {
  return model.batchStats
    .map((batch) => {
      const members = durations([
        ['compute_input', batch.computeInput],
        ['compute_infer', batch.computeInfer],
        ['compute_output', batch.computeOutput],
      ]);
      return `{"batch_size":${batch.batchSize},${members}}`;
    })
    .join(',');
}

function memoryUsage(model: ModelStatisticsSnapshot): string {
  return model.memoryUsage
    .map(({ type, id, byteSize }) => `{"type":"${type}","id":${id},"byte_size":${byteSize}}`)
    .join(',');
}

export function logSettingsDocument(settings: LogSettings): string {
  return (
    `{"log_file":${quoteJson(settings.logFile)},"log_info":${settings.isInfo},"log_warning":${settings.isWarning},` +
    `"log_error":${settings.isError},"log_verbose_level":${settings.verboseLevel},"log_format":${quoteJson(settings.format)}}`
  );
}
