// The flags of everything that listens: HTTP, gRPC, the OpenAI API, the two cloud endpoints, metrics.
// A part of flag-table.ts, which puts it in its place.

import { COUNT, type Extra, row, THREADS } from './flag-row.ts';
import type { FlagGroup } from './flags.ts';

const PORT: Extra = { min: 0, max: 65_535 };
/** More than one group of APIs may be restricted. */
const RESTRICTED: Extra = { isRepeatable: true, argument: '<string>:<string>=<string>' };
const NO_SAGEMAKER: Extra = { inert: 'SageMaker endpoints are not available' };
const NO_VERTEX: Extra = { inert: 'Vertex AI endpoints are not available' };

export const LISTENER_FLAG_GROUPS: readonly FlagGroup[] = [
  {
    title: 'HTTP',
    flags: [
      row('allow-http', 'boolean', 'true', 'Listen for HTTP requests.'),
      row('http-address', 'string', '0.0.0.0', 'Address to listen on.'),
      row('http-port', 'integer', '8000', 'Port to listen on.', PORT),
      row('reuse-http-port', 'boolean', 'false', 'Share the port with other servers (SO_REUSEPORT).'),
      row(
        'http-header-forward-pattern',
        'string',
        '',
        'Headers whose name matches become request parameters.',
      ),
      row('http-thread-count', 'integer', '8', 'Number of HTTP threads.', THREADS),
      row('http-max-input-size', 'integer', '67108864', 'Largest JSON part of a request, in bytes.', {
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      }),
      row(
        'http-restricted-api',
        'string',
        '',
        'Ask for a header: <api>[,<api>]:<header>=<value>.',
        RESTRICTED,
      ),
      row('http-use-ssl', 'boolean', 'false', 'Speak TLS.'),
      row('http-use-ssl-mutual', 'boolean', 'false', 'Speak TLS and ask clients for a certificate.'),
      row('http-server-cert', 'string', '', 'PEM file with the server certificate.'),
      row('http-server-key', 'string', '', 'PEM file with the server key.'),
      row('http-root-cert', 'string', '', 'PEM file with the certificates that clients are checked against.'),
    ],
  },
  {
    title: 'GRPC',
    flags: [
      row('allow-grpc', 'boolean', 'true', 'Listen for gRPC requests.'),
      row('grpc-address', 'string', '0.0.0.0', 'Address to listen on.'),
      row('grpc-port', 'integer', '8001', 'Port to listen on.', PORT),
      row('reuse-grpc-port', 'boolean', 'false', 'Share the port with other servers (SO_REUSEPORT).'),
      row(
        'grpc-header-forward-pattern',
        'string',
        '',
        'Metadata whose key matches become request parameters.',
      ),
      row('grpc-infer-thread-count', 'integer', '2', 'Number of inference threads.', {
        ...THREADS,
        min: 2,
        max: 128,
      }),
      row(
        'grpc-infer-allocation-pool-size',
        'integer',
        '8',
        'Number of request objects kept for reuse.',
        THREADS,
      ),
      row(
        'grpc-max-response-pool-size',
        'integer',
        '2147483647',
        'Responses of one request that may wait for a slow client before its model has to pause.',
        { min: 1 },
      ),
      row('grpc-use-ssl', 'boolean', 'false', 'Speak TLS.'),
      row('grpc-use-ssl-mutual', 'boolean', 'false', 'Speak TLS and ask clients for a certificate.'),
      row('grpc-server-cert', 'string', '', 'PEM file with the server certificate.'),
      row('grpc-server-key', 'string', '', 'PEM file with the server key.'),
      row('grpc-root-cert', 'string', '', 'PEM file with the certificates that clients are checked against.'),
      row('grpc-infer-response-compression-level', 'string', 'none', 'none, low, medium or high.', {
        choices: ['none', 'low', 'medium', 'high'],
      }),
      row('grpc-keepalive-time', 'integer', '7200000', 'Milliseconds between keepalive pings.', COUNT),
      row(
        'grpc-keepalive-timeout',
        'integer',
        '20000',
        'Milliseconds to wait for a ping to be answered.',
        COUNT,
      ),
      row('grpc-keepalive-permit-without-calls', 'boolean', 'false', 'Ping also when there are no calls.'),
      row('grpc-http2-max-pings-without-data', 'integer', '2', 'Pings sent without data in between.', COUNT),
      row(
        'grpc-http2-min-recv-ping-interval-without-data',
        'integer',
        '300000',
        'Milliseconds that a client must leave between pings when it sends nothing else.',
        COUNT,
      ),
      row(
        'grpc-http2-max-ping-strikes',
        'integer',
        '2',
        'Pings too early before a connection is closed.',
        COUNT,
      ),
      row(
        'grpc-max-connection-age',
        'integer',
        '',
        'Milliseconds after which a connection is closed.',
        COUNT,
      ),
      row(
        'grpc-max-connection-age-grace',
        'integer',
        '',
        'Milliseconds more for calls in flight then.',
        COUNT,
      ),
      row(
        'grpc-restricted-protocol',
        'string',
        '',
        'Ask for metadata: <api>[,<api>]:<key>=<value>.',
        RESTRICTED,
      ),
    ],
  },
  {
    title: 'OpenAI',
    flags: [
      row(
        'openai-port',
        'integer',
        '',
        'Port for the OpenAI API alone, with /health and /metrics. Without it the API is only at /v1 of the HTTP port.',
        PORT,
      ),
      row('openai-address', 'string', '', 'Address to listen on. The default is that of --http-address.'),
      row(
        'openai-api-key-file',
        'string',
        '',
        'Serve /v1, on either port, only to requests with a key of this file: one per line, # begins a comment. It is ' +
          'read again when it changes.',
      ),
    ],
  },
  {
    title: 'SageMaker',
    flags: [
      row('allow-sagemaker', 'boolean', 'false', 'Listen for SageMaker requests.', NO_SAGEMAKER),
      row('sagemaker-port', 'integer', '8080', 'Port to listen on.', { ...PORT, ...NO_SAGEMAKER }),
      row('sagemaker-safe-port-range', 'string', '', 'Ports allowed for it.', {
        ...NO_SAGEMAKER,
        argument: '<integer>-<integer>',
      }),
      row('sagemaker-thread-count', 'integer', '8', 'Number of threads.', NO_SAGEMAKER),
    ],
  },
  {
    title: 'Vertex',
    flags: [
      row('allow-vertex-ai', 'boolean', 'false', 'Listen for Vertex AI requests.', NO_VERTEX),
      row('vertex-ai-port', 'integer', '8080', 'Port to listen on.', { ...PORT, ...NO_VERTEX }),
      row('vertex-ai-thread-count', 'integer', '8', 'Number of threads.', NO_VERTEX),
      row('vertex-ai-default-model', 'string', '', 'Model for requests that name none.', NO_VERTEX),
    ],
  },
  {
    title: 'Metrics',
    flags: [
      row('allow-metrics', 'boolean', 'true', 'Serve Prometheus metrics.'),
      row('allow-gpu-metrics', 'boolean', 'true', 'With metrics of the GPUs.'),
      row('allow-cpu-metrics', 'boolean', 'true', 'With metrics of processor and memory.'),
      row('metrics-address', 'string', '', 'Address to listen on. The default is that of --http-address.'),
      row('metrics-port', 'integer', '8002', 'Port to listen on.', PORT),
      row('metrics-interval-ms', 'float', '2000', 'Milliseconds between two readings of the machine.', COUNT),
      row(
        'metrics-config',
        'string',
        '',
        'counter_latencies, histogram_latencies, summary_latencies (true or false) or summary_quantiles (q:e,...).',
        { isRepeatable: true, argument: '<string>=<string>' },
      ),
    ],
  },
];
