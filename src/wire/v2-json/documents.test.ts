// Unit tests of the small JSON documents, from the recorded answers of a Triton 2.51.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import {
  errorDocument,
  logSettingsDocument,
  modelMetadataDocument,
  repositoryIndexDocument,
  serverMetadataDocument,
  statisticsDocument,
} from './documents.ts';

test('errors are escaped JSON, UTF-8 as it is', () => {
  assert.equal(errorDocument('a"b\\\n\u0001é'), '{"error":"a\\"b\\\\\\n\\u0001é"}');
  assert.equal(errorDocument(''), '{"error":""}');
});

test('server and model metadata', () => {
  assert.equal(
    serverMetadataDocument({ name: 'triton', version: '2.51.0', extensions: ['classification', 'sequence'] }),
    '{"name":"triton","version":"2.51.0","extensions":["classification","sequence"]}',
  );
  const model: ModelView = {
    name: 'classifier',
    version: 1,
    maxBatchSize: 8,
    inputs: [{ name: 'SCORES_IN', datatype: 'FP32', dims: [5], optional: false }],
    outputs: [{ name: 'SCORES', datatype: 'BYTES', dims: [-1], optional: false }],
    isDecoupled: false,
    labelsOf: () => undefined,
  };
  const options = { versions: [1, 3], platform: 'onnxruntime_onnx' };
  assert.equal(
    modelMetadataDocument(model, options),
    '{"name":"classifier","versions":["1","3"],"platform":"onnxruntime_onnx","inputs":[{"name":"SCORES_IN","datatype":"FP32","shape":[-1,5]}],"outputs":[{"name":"SCORES","datatype":"BYTES","shape":[-1,-1]}]}',
  );
  assert.match(modelMetadataDocument({ ...model, maxBatchSize: 0 }, options), /"shape":\[5\]/);
});

test('repository index', () => {
  assert.equal(
    repositoryIndexDocument([
      { name: 'a' },
      { name: 'b', version: '1', state: 'READY', reason: '' },
      { name: 'c', version: '2', state: 'UNAVAILABLE', reason: 'unloaded' },
    ]),
    '[{"name":"a"},{"name":"b","version":"1","state":"READY"},{"name":"c","version":"2","state":"UNAVAILABLE","reason":"unloaded"}]',
  );
});

test('statistics', () => {
  const one = { count: 1, ns: 10 };
  const zero = { count: 0, ns: 0 };
  const text = statisticsDocument([
    {
      name: 'm',
      version: 2,
      lastInferenceMs: 1794710247936,
      inferenceCount: 6,
      executionCount: 5,
      success: one,
      fail: zero,
      queue: one,
      computeInput: one,
      computeInfer: one,
      computeOutput: one,
      cacheHit: zero,
      cacheMiss: zero,
      responseStats: {
        '0': {
          computeInfer: one,
          computeOutput: one,
          success: one,
          fail: zero,
          emptyResponse: zero,
          cancel: zero,
        },
      },
      batchStats: [{ batchSize: 3, computeInput: one, computeInfer: one, computeOutput: one }],
      memoryUsage: [{ type: 'GPU', id: 0, byteSize: 5 }],
    },
  ]);
  const duration = '{"count":1,"ns":10}';
  const none = '{"count":0,"ns":0}';
  assert.equal(
    text,
    `{"model_stats":[{"name":"m","version":"2","last_inference":1794710247936,"inference_count":6,"execution_count":5,"inference_stats":{"success":${duration},"fail":${none},"queue":${duration},"compute_input":${duration},"compute_infer":${duration},"compute_output":${duration},"cache_hit":${none},"cache_miss":${none}},"response_stats":{"0":{"compute_infer":${duration},"compute_output":${duration},"success":${duration},"fail":${none},"empty_response":${none},"cancel":${none}}},"batch_stats":[{"batch_size":3,"compute_input":${duration},"compute_infer":${duration},"compute_output":${duration}}],"memory_usage":[{"type":"GPU","id":0,"byte_size":5}]}]}`,
  );
});

test('log settings', () => {
  assert.equal(
    logSettingsDocument({
      logFile: '',
      isInfo: true,
      isWarning: true,
      isError: false,
      verboseLevel: 1,
      format: 'default',
    }),
    '{"log_file":"","log_info":true,"log_warning":true,"log_error":false,"log_verbose_level":1,"log_format":"default"}',
  );
});
