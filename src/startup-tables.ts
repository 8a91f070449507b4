// The tables a Triton user expects to see when the server starts: models with their state, and the options.

import type { ServerOptions } from './cli/options.ts';
import type { IndexRow } from './core/repository/catalog.ts';
import { TRITON_VERSION } from './frontend/services.ts';
import type { Logger } from './lib/logger.ts';

const MODE_NAMES = { none: 'MODE_NONE', poll: 'MODE_POLL', explicit: 'MODE_EXPLICIT' } as const;

export function printStartup(logger: Logger, options: ServerOptions, index: readonly IndexRow[]): void {
  const log = logger.child('server');
  log.table('', ['Model', 'Version', 'Status'], index.filter((row) => row.state !== undefined).map(modelRow));
  log.table('', ['Option', 'Value'], optionRows(options));
}

function modelRow(row: IndexRow): string[] {
  const status = row.reason === '' ? String(row.state) : `${row.state}: ${row.reason}`;
  return [row.name, row.version === undefined ? '-' : String(row.version), status];
}

function optionRows(options: ServerOptions): string[][] {
  const { repository, rateLimit } = options;
  return [
    ['server_id', options.serverId],
    ['server_version', TRITON_VERSION],
    [
      'server_extensions',
      'classification sequence model_repository model_repository(unload_dependents) schedule_policy model_configuration system_shared_memory cuda_shared_memory binary_tensor_data parameters statistics trace logging',
    ],
    ...repository.paths.map((path, i) => [`model_repository_path[${i}]`, path]),
    ['model_control_mode', MODE_NAMES[repository.controlMode]],
    ...repository.loadModels.map((name, i) => [`startup_models_${i}`, name]),
    ['strict_model_config', repository.isAutoComplete ? '0' : '1'],
    ['model_config_name', repository.modelConfigName],
    ['rate_limit', rateLimit.isExecutionCount ? 'EXEC_COUNT' : 'OFF'],
    ['pinned_memory_pool_byte_size', String(options.pinnedPoolBytes)],
    ['min_supported_compute_capability', '0.0'],
    ['strict_readiness', repository.isStrictReadiness ? '1' : '0'],
    ['exit_timeout', String(options.exitTimeoutSecs)],
    ['cache_enabled', options.cacheConfigs.size > 0 ? '1' : '0'],
  ];
}
