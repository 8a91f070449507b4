// The command line: defaults, forms of values, refusals. Texts that Triton 2.51 has were taken from what it
// prints for the same arguments; refusals of flags and typos that it does not know are our own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_METRICS_CONFIG } from '../domain/metrics-config.ts';
import { backendConfigOf } from './options.ts';
import { parseFlags } from './parse-flags.ts';
import { UsageError } from './usage-error.ts';

const parse = (...argv: string[]) => parseFlags(['--model-repository=/models', ...argv]);

/** The message of the UsageError that these arguments give. */
function refusal(...argv: string[]): string {
  try {
    parse(...argv);
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return error.message;
  }
  assert.fail(`accepted: ${argv.join(' ')}`);
}

test('without flags everything has the default of Triton', () => {
  const options = parse();
  assert.equal(options.serverId, 'triton');
  assert.equal(options.exitTimeoutSecs, 30);
  assert.deepEqual(options.repository, {
    paths: ['/models'],
    controlMode: 'none',
    pollSecs: 0,
    loadModels: [],
    isStrictReadiness: true,
    isExitOnError: true,
    isAutoComplete: true,
    modelConfigName: '',
    loadConcurrency: 4,
    loadRetryCount: 0,
  });
  assert.deepEqual(options.http, {
    isAllowed: true,
    address: '0.0.0.0',
    port: 8000,
    isPortReused: false,
    headerForwardPattern: undefined,
    inputBytesMax: 67_108_864,
    restrictedApis: new Map(),
    ssl: undefined,
  });
  assert.equal(options.grpc.isAllowed, true);
  assert.equal(options.grpc.port, 8001);
  assert.equal(options.grpc.connectionAgeMsMax, undefined);
  assert.equal(options.metrics.address, '0.0.0.0');
  assert.equal(options.metrics.port, 8002);
  assert.deepEqual(options.metrics.config, DEFAULT_METRICS_CONFIG);
  assert.deepEqual(options.log, {
    logFile: '',
    isInfo: true,
    isWarning: true,
    isError: true,
    verboseLevel: 0,
    format: 'default',
  });
  assert.deepEqual(options.trace, {
    mode: 'triton',
    levels: [],
    rate: 1000,
    count: -1,
    file: '',
    logFrequency: 0,
    opentelemetry: [],
  });
  assert.equal(options.pinnedPoolBytes, 268_435_456);
  assert.deepEqual(options.warnings, []);
});

test('values follow an equals sign or a space, booleans have several words', () => {
  const options = parse(
    '--http-port',
    '9000',
    '--allow-grpc=FALSE',
    '--strict-readiness',
    '0',
    '--exit-on-error=Off',
    '--log-verbose=true',
    '--http-address=127.0.0.1',
    '--disable-auto-complete-config',
    '--log-format=ISO8601',
  );
  assert.equal(options.http.port, 9000);
  assert.equal(options.grpc.isAllowed, false);
  assert.equal(options.repository.isStrictReadiness, false);
  assert.equal(options.repository.isExitOnError, false);
  assert.equal(options.repository.isAutoComplete, false);
  assert.equal(options.log.verboseLevel, 1);
  assert.equal(options.log.format, 'ISO8601');
  // metrics follow the address of HTTP unless they have their own
  assert.equal(options.metrics.address, '127.0.0.1');
});

test('repeatable flags add up', () => {
  const options = parse(
    '--model-store=/more',
    '--model-repository=/models',
    '--model-control-mode=EXPLICIT',
    '--load-model=a',
    '--load-model=b',
    '--load-model=a',
    '--backend-config=onnxruntime,intra=2',
    '--backend-config=default-max-batch-size=8',
    '--backend-config=onnxruntime,default-max-batch-size=4',
  );
  assert.deepEqual(options.repository.paths, ['/more', '/models']);
  assert.deepEqual(options.repository.loadModels, ['a', 'b']);
  const directory = { 'backend-directory': '/opt/tritonserver/backends' };
  assert.deepEqual(backendConfigOf(options, 'onnxruntime'), {
    ...directory,
    intra: '2',
    'default-max-batch-size': '4',
  });
  assert.deepEqual(backendConfigOf(options, 'python'), { ...directory, 'default-max-batch-size': '8' });
  assert.deepEqual(backendConfigOf(parse('--backend-directory=/backends'), 'python'), {
    'backend-directory': '/backends',
  });
});

test('poll seconds count in poll mode only', () => {
  assert.equal(parse('--repository-poll-secs=3').repository.pollSecs, 0);
  assert.equal(parse('--repository-poll-secs=3', '--model-control-mode=poll').repository.pollSecs, 3);
});

test('values of the wrong kind are refused in the words of Triton', () => {
  assert.equal(
    refusal('--allow-http=maybe'),
    'Bad option: "--allow-http".\ninvalid value for bool option: maybe',
  );
  assert.equal(refusal('--http-port=abc'), 'Bad option: "--http-port".\nInvalid option value. Got abc');
  assert.equal(refusal('--http-port=1.5'), 'Bad option: "--http-port".\nInvalid option value. Got 1.5');
  assert.match(refusal('--http-port=70000'), /\nProvided option value is out of bound\. Got 70000/);
  assert.match(refusal('--http-max-input-size=0'), /out of bound/);
  assert.match(refusal('--grpc-infer-thread-count=1'), /out of bound/);
  assert.match(refusal('--log-format=xml'), /\ninvalid argument for --log-format\n/);
  assert.match(refusal('--model-control-mode=x'), /\ninvalid argument for --model-control-mode\n/);
  assert.equal(refusal('--http-port'), "option '--http-port' requires an argument");
  assert.match(refusal('--disable-auto-complete-config=1'), /doesn't allow an argument/);
  assert.match(refusal('--model-config-name=a b'), /model-config-name/);
});

test('what is no flag is unexpected, with a guess', () => {
  assert.equal(refusal('bar'), 'Unexpected argument: bar');
  assert.equal(refusal('--http-prot=1'), 'Unexpected argument: --http-prot=1\nDid you mean --http-port?');
  assert.equal(
    refusal('--model_repository=x'),
    'Unexpected argument: --model_repository=x\nDid you mean --model-repository?',
  );
  assert.match(refusal('--model-repo=x'), /Did you mean --model-repository\?/);
  assert.equal(refusal('--entirely-else'), 'Unexpected argument: --entirely-else');
});

test('the OpenAI API has a port of its own only when it is given one', () => {
  assert.deepEqual(parse().openai, { isAllowed: false, address: '0.0.0.0', port: 0, apiKeyFile: '' });
  const given = parse('--openai-port=9000', '--http-address=::1', '--openai-api-key-file=keys');
  assert.deepEqual(given.openai, { isAllowed: true, address: '::1', port: 9000, apiKeyFile: 'keys' });
  assert.equal(parse('--openai-port=0', '--openai-address=127.0.0.1').openai.address, '127.0.0.1');
  assert.match(refusal('--openai-port=8000'), /HTTP requests and OpenAI requests at the same address/);
  assert.match(refusal('--openai-port=70000'), /openai-port/);
});

test('two services on one socket are refused, unless one is off or the system chooses the port', () => {
  assert.equal(
    refusal('--http-port=8001'),
    'The server cannot listen to HTTP requests and GRPC requests at the same address and port 0.0.0.0:8001',
  );
  assert.equal(
    refusal('--metrics-port=8001'),
    'The server cannot listen to GRPC requests and metrics requests at the same address and port 0.0.0.0:8001',
  );
  parse('--http-port=8001', '--allow-grpc=false');
  parse('--http-port=8001', '--http-address=127.0.0.1');
  parse('--http-port=0', '--grpc-port=0', '--metrics-port=0');
});

test('a repository is required, and * stands alone', () => {
  assert.throws(
    () => parseFlags([]),
    (error) =>
      error instanceof UsageError &&
      !error.isUsageShown &&
      error.message.startsWith(
        'error: creating server: Invalid argument - --model-repository must be specified',
      ),
  );
  assert.match(
    refusal('--model-control-mode=explicit', '--load-model=*', '--load-model=a'),
    /Wildcard model name '\*' must be the ONLY startup model/,
  );
});

test('restricted APIs become a map by category', () => {
  const options = parse(
    '--http-restricted-api=shared-memory,trace:x-key=a=b',
    '--http-restricted-api=logging:y=z',
    '--grpc-restricted-protocol=health:admin=1',
  );
  assert.deepEqual(options.http.restrictedApis.get('trace'), { header: 'x-key', value: 'a=b' });
  assert.deepEqual([...options.http.restrictedApis.keys()], ['shared-memory', 'trace', 'logging']);
  assert.deepEqual(options.grpc.restrictedProtocols.get('health'), {
    header: 'triton-grpc-protocol-admin',
    value: '1',
  });
  assert.match(refusal('--http-restricted-api=foo:a=b'), /unknown restricted api 'foo'/);
  assert.match(refusal('--grpc-restricted-protocol=foo:a=b'), /unknown restricted protocol 'foo'/);
  assert.equal(
    refusal('--http-restricted-api=foo'),
    'Bad option: "--http-restricted-api".\n--http-restricted-api option format is \'<config name>:<setting>=<value>\'. Got foo',
  );
  assert.match(
    refusal('--http-restricted-api=health:a=b', '--http-restricted-api=health,trace:c=d'),
    /restricted api 'health' can not be specified in multiple config groups$/,
  );
});

test('prefixes of shared memory add up, without their slashes', () => {
  assert.equal(parse().shmPrefixes, undefined);
  const options = parse('--shared-memory-allow=/a,b_', '--shared-memory-allow=c');
  assert.deepEqual(options.shmPrefixes, ['a', 'b_', 'c']);
  for (const wrong of ['', '/', 'a,,b']) {
    assert.match(refusal(`--shared-memory-allow=${wrong}`), /without empty prefixes/);
  }
});

test('a header pattern matches anywhere and ignores case unless told', () => {
  const pattern = (text: string) => parse(`--http-header-forward-pattern=${text}`).http.headerForwardPattern!;
  assert.ok(pattern('my_').test('X-MY_header'));
  assert.ok(pattern('(?P<name>abc)').test('ABC'));
  assert.ok(!pattern('(?-i)abc').test('ABC'));
  assert.ok(pattern('\\Aabc\\z').test('abc'));
  assert.match(refusal('--http-header-forward-pattern=('), /invalid pattern '\('/);
});

test('the metrics config is parsed and its typos are refused', () => {
  const { config } = parse(
    '--metrics-config=counter_latencies=false',
    '--metrics-config=summary_latencies=true',
    '--metrics-config=summary_quantiles=0.5:0.05,0.75:0.01',
  ).metrics;
  assert.deepEqual(config, {
    isCounterLatencies: false,
    isHistogramLatencies: false,
    isSummaryLatencies: true,
    summaryQuantiles: [
      { quantile: 0.5, error: 0.05 },
      { quantile: 0.75, error: 0.01 },
    ],
  });
  assert.match(
    refusal('--metrics-config=foo'),
    /--metrics-config option format is <setting>=<value>\. Got foo/,
  );
  assert.match(refusal('--metrics-config=foo=1'), /unknown setting 'foo'/);
  assert.match(refusal('--metrics-config=summary_quantiles=2:0'), /Got 2:0/);
  assert.match(refusal('--metrics-config=summary_latencies=x'), /invalid value for bool option: x/);
});

test('caches, resources and backend settings have their forms', () => {
  const options = parse(
    '--cache-config=local,size=1024',
    '--rate-limit=execution_count',
    '--rate-limit-resource=r:2:1',
  );
  assert.deepEqual(options.cacheConfigs, new Map([['local', { size: '1024' }]]));
  assert.deepEqual(options.rateLimit, {
    isExecutionCount: true,
    resources: [{ name: 'r', count: 2, device: 1 }],
  });
  assert.deepEqual(parse('--response-cache-byte-size=7').cacheConfigs, new Map([['local', { size: '7' }]]));
  assert.deepEqual(options.warnings, []);
  assert.match(
    parse('--response-cache-byte-size=7').warnings.join(),
    /^'--response-cache-byte-size' has been deprecated! .* would be: '--cache-config=local,size=7'$/,
  );
  assert.match(refusal('--cache-config=size=4'), /No cache specified\./);
  assert.match(
    refusal('--cache-config=local,size=4', '--response-cache-byte-size=3'),
    /^Error: Incompatible flags --response-cache-byte-size and --cache-config/,
  );
  assert.match(refusal('--rate-limit-resource=foo'), /--rate-limit-resource option format is/);
  assert.match(refusal('--rate-limit-resource=a:b'), /Invalid option value\. Got b/);
  assert.match(refusal('--backend-config=foo'), /'<backend name>,<setting>=<value>'\. Got foo$/);
  assert.match(refusal('--backend-config=,a=b'), /No backend specified\./);
});

test('trace settings come from one flag or from the old five', () => {
  const { trace } = parse(
    '--trace-config=triton,file=/tmp/trace.json',
    '--trace-config=level=TIMESTAMPS',
    '--trace-config=level=tensors',
    '--trace-config=rate=5',
    '--trace-config=triton,log-frequency=2',
  );
  assert.deepEqual(trace.levels, ['TIMESTAMPS', 'TENSORS']);
  assert.equal(trace.rate, 5);
  assert.equal(trace.file, '/tmp/trace.json');
  assert.equal(trace.logFrequency, 2);
  assert.deepEqual(parse('--trace-level=max', '--trace-rate=3').trace.levels, ['TIMESTAMPS']);
  assert.deepEqual(parse('--trace-config=level=TIMESTAMPS', '--trace-config=level=OFF').trace.levels, []);
  assert.match(
    refusal('--trace-config=rate=x'),
    /^Bad option: "--trace-config rate"\.\nInvalid option value\. Got x$/,
  );
  assert.match(refusal('--trace-config=foo,a=b'), /invalid value for trace mode option: foo/);
  assert.match(
    refusal('--trace-rate=1', '--trace-config=rate=2'),
    /Incompatible flags --trace-rate and --trace-config/,
  );
});

test('flags without effect are named once each', () => {
  const { warnings } = parse('--http-thread-count=4', '--http-thread-count=5', '--strict-model-config=true');
  assert.equal(warnings.length, 2);
  assert.match(warnings[0]!, /^--http-thread-count is accepted but has no effect: /);
  assert.match(warnings[1]!, /'--strict-model-config' has been deprecated!/);
});

test('TLS is asked for by listener; mutual TLS is TLS too', () => {
  const http = ['--http-use-ssl=true', '--http-server-cert=c.pem', '--http-server-key=k.pem'];
  const options = parse(...http, '--grpc-use-ssl-mutual=1', '--grpc-root-cert=r.pem');
  assert.deepEqual(options.http.ssl, {
    isMutual: false,
    serverCert: 'c.pem',
    serverKey: 'k.pem',
    rootCert: '',
  });
  assert.deepEqual(options.grpc.ssl, { isMutual: true, serverCert: '', serverKey: '', rootCert: 'r.pem' });
});
