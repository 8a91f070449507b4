// Every flag of tritonserver, in the groups and order of its usage; flags of newer versions than 2.51 included.
// This version acts upon each of them but those that are marked inert.

import { COUNT, type Extra, row, THREADS } from './flag-row.ts';
import type { FlagGroup } from './flags.ts';
import { LISTENER_FLAG_GROUPS } from './listener-flags.ts';

const SETTING: Extra = { isRepeatable: true, argument: '<string>,<string>=<string>' };
const PER_GPU: Extra = {
  isRepeatable: true,
  argument: '<integer>:<integer>',
  inert: 'memory pools are not used',
};
const NO_PLUGINS: Extra = { inert: 'backends and caches are part of the server, no libraries are loaded' };
const OLD_TRACE = 'Deprecated: use --trace-config.';

export const FLAG_GROUPS: readonly FlagGroup[] = [
  {
    title: 'Server',
    flags: [
      row('help', 'switch', '', 'Print this text.'),
      row('version', 'switch', '', 'Print the version.'),
      row('id', 'string', 'triton', 'Name of this server in its metadata.'),
      row(
        'exit-timeout-secs',
        'integer',
        '30',
        'Time for requests in flight to finish when the server stops.',
      ),
    ],
  },
  {
    title: 'Logging',
    flags: [
      row('log-verbose', 'level', '0', 'Verbose logging: 0 is off, larger numbers say more.', COUNT),
      row('log-info', 'boolean', 'true', 'Log informational messages.'),
      row('log-warning', 'boolean', 'true', 'Log warnings.'),
      row('log-error', 'boolean', 'true', 'Log errors.'),
      row('log-format', 'string', 'default', 'Form of a log line: "default" or "ISO8601".'),
      row('log-file', 'string', '', 'Append the log to this file instead of writing it to the console.'),
    ],
  },
  {
    title: 'Model repository',
    flags: [
      row('model-store', 'string', '', 'The same as --model-repository.', { isRepeatable: true }),
      row(
        'model-repository',
        'string',
        '',
        'Directory with the models to serve. May be given several times.',
        {
          isRepeatable: true,
        },
      ),
      row('exit-on-error', 'boolean', 'true', 'Exit when a model fails to load at start-up.'),
      row('disable-auto-complete-config', 'switch', '', 'Do not complete config.pbtxt from the model file.'),
      row('strict-readiness', 'boolean', 'true', '/v2/health/ready is true only when every model is ready.'),
      row(
        'model-control-mode',
        'string',
        'none',
        '"none": load all models at start-up; "poll": follow changes of the repository; "explicit": load and ' +
          'unload through the API, at start-up only what --load-model names.',
        { choices: ['none', 'poll', 'explicit'] },
      ),
      row(
        'repository-poll-secs',
        'integer',
        '15',
        'Seconds between two looks at the repository, in poll mode.',
      ),
      row('load-model', 'string', '', 'Model to load at start-up in explicit mode; "*" alone means all.', {
        isRepeatable: true,
      }),
      row('model-config-name', 'string', '', 'Use configs/<name>.pbtxt of a model in place of config.pbtxt.'),
      row('model-load-thread-count', 'integer', '4', 'Number of models that load at the same time.', COUNT),
      row('model-load-retry-count', 'integer', '0', 'How often a failed load is tried again.', COUNT),
      row(
        'model-namespacing',
        'boolean',
        'false',
        'Allow models of the same name in different repositories.',
        {
          inert: 'model namespaces are not available yet',
        },
      ),
      row('enable-peer-access', 'boolean', 'true', 'Let GPUs read each other.', {
        inert: 'devices are not managed by the server',
      }),
    ],
  },
  ...LISTENER_FLAG_GROUPS,
  {
    title: 'Tracing',
    flags: [
      row(
        'trace-config',
        'string',
        '',
        'mode, level, rate, count, triton,file, triton,log-frequency, opentelemetry,url or opentelemetry,resource.',
        SETTING,
      ),
    ],
  },
  {
    title: 'Backend, repository agent, response cache',
    flags: [
      row(
        'backend-directory',
        'string',
        '/opt/tritonserver/backends',
        'Where Python-based backends lie: <name>/model.py serves the models with that backend.',
      ),
      row('backend-config', 'string', '', 'Setting of one backend, or, without a name, of all.', SETTING),
      row('repoagent-directory', 'string', '/opt/tritonserver/repoagents', 'Where agents lie.', NO_PLUGINS),
      row(
        'cache-config',
        'string',
        '',
        'One setting of the response cache: local,size=<bytes>, or redis, with host, port, user, password, db, ' +
          'connect_timeout, socket_timeout, ttl, tls_enabled, cert, key, cacert, cacert_dir or sni.',
        SETTING,
      ),
      row('cache-directory', 'string', '/opt/tritonserver/caches', 'Where caches lie.', NO_PLUGINS),
    ],
  },
  {
    title: 'Rate limiter',
    flags: [
      row('rate-limit', 'string', 'off', '"execution_count" or "off".', {
        choices: ['off', 'execution_count'],
      }),
      row('rate-limit-resource', 'string', '', 'Number of a resource there is, for each device or for one.', {
        isRepeatable: true,
        argument: '<string>:<integer>:<integer>',
      }),
    ],
  },
  {
    title: 'Memory and devices',
    flags: [
      row('pinned-memory-pool-byte-size', 'integer', '268435456', 'Size of the pinned pool, in bytes.', {
        inert: 'pinned memory is not used; its size is only reported',
        min: 0,
      }),
      row('cuda-memory-pool-byte-size', 'string', '', 'Size of the pool of one GPU, in bytes.', PER_GPU),
      row(
        'cuda-virtual-address-size',
        'string',
        '',
        'Size of the address range of one GPU, in bytes.',
        PER_GPU,
      ),
      row('min-supported-compute-capability', 'float', '6.0', 'GPUs below it are not used.', {
        inert: 'devices are chosen by the backends',
      }),
      row('buffer-manager-thread-count', 'integer', '0', 'Threads that copy tensors.', THREADS),
      row('host-policy', 'string', '', 'Settings numa-node and cpu-cores of a host policy.', {
        ...SETTING,
        inert: 'processes are not bound to cores',
      }),
      row('model-load-gpu-limit', 'string', '', 'Share of a GPU that may be in use when a model loads.', {
        isRepeatable: true,
        argument: '<integer>:<fraction>',
        inert: 'memory of devices is not watched',
      }),
      row('allow-client-shm', 'boolean', 'true', 'Let clients register shared memory.'),
      row(
        'shared-memory-allow',
        'string',
        '',
        'Only keys that begin with one of these prefixes can be registered. The default is every key but those ' +
          'of other programs.',
        { isRepeatable: true, argument: '<prefix>[,<prefix>...]' },
      ),
    ],
  },
  {
    title: 'Deprecated',
    flags: [
      row('strict-model-config', 'boolean', 'false', 'Deprecated: use --disable-auto-complete-config.'),
      row('response-cache-byte-size', 'integer', '', 'Deprecated: use --cache-config local,size=<bytes>.', {
        min: 0,
      }),
      row('trace-file', 'string', '', OLD_TRACE),
      row('trace-level', 'string', '', OLD_TRACE, { isRepeatable: true }),
      row('trace-rate', 'integer', '1000', OLD_TRACE, { min: 0 }),
      row('trace-count', 'integer', '-1', OLD_TRACE),
      row('trace-log-frequency', 'integer', '0', OLD_TRACE, { min: 0 }),
    ],
  },
];
