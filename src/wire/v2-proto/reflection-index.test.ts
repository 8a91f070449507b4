import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FILE_DESCRIPTORS } from './generated/file-descriptors.ts';
import { METHODS } from './generated/methods.ts';
import { messageNames } from './message-table.ts';
import type { ReflectionRequest, ReflectionResponse } from './messages.ts';
import { answerReflection, SERVICE_NAMES } from './reflection-index.ts';

function ask(question: Omit<ReflectionRequest, 'host'>): ReflectionResponse {
  return answerReflection({ host: 'h', ...question });
}

/** Names of the files in an answer, found by their bytes. */
function filesIn(response: ReflectionResponse): string[] {
  const files = response.file_descriptor_response?.file_descriptor_proto ?? [];
  return files.map(
    (bytes) => FILE_DESCRIPTORS.find(({ base64 }) => base64 === bytes.toString('base64'))?.name ?? '?',
  );
}

describe('reflection', () => {
  test('lists the services', () => {
    assert.deepEqual(SERVICE_NAMES, [
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
      'inference.GRPCInferenceService',
    ]);
    const { list_services_response } = ask({ list_services: '*' });
    assert.deepEqual(
      list_services_response?.service.map(({ name }) => name),
      SERVICE_NAMES,
    );
  });

  test('gives a file and what it imports', () => {
    assert.deepEqual(filesIn(ask({ file_by_filename: 'grpc_service.proto' })), [
      'grpc_service.proto',
      'model_config.proto',
    ]);
    assert.deepEqual(filesIn(ask({ file_by_filename: 'model_config.proto' })), ['model_config.proto']);
  });

  for (const [symbol, file] of [
    ['inference.GRPCInferenceService', 'grpc_service.proto'],
    ['inference.GRPCInferenceService.ModelInfer', 'grpc_service.proto'],
    ['inference.ModelInferRequest.InferInputTensor', 'grpc_service.proto'],
    ['inference.ModelInferRequest.ParametersEntry', 'grpc_service.proto'],
    ['inference.ModelInferRequest.model_name', 'grpc_service.proto'],
    ['inference.InferParameter.parameter_choice', 'grpc_service.proto'],
    ['inference.DataType', 'model_config.proto'],
    ['inference.TYPE_FP32', 'model_config.proto'],
    ['inference.ModelInstanceGroup.Kind', 'model_config.proto'],
    ['inference.ModelInstanceGroup.KIND_CPU', 'model_config.proto'],
    ['grpc.health.v1.Health.Watch', 'grpc/health/v1/health.proto'],
    ['grpc.health.v1.HealthCheckResponse.SERVING', 'grpc/health/v1/health.proto'],
    ['grpc.reflection.v1.ServerReflection', 'grpc/reflection/v1/reflection.proto'],
    ['grpc.reflection.v1alpha.ErrorResponse', 'grpc/reflection/v1alpha/reflection.proto'],
  ] as const) {
    test(`finds ${symbol}`, () => {
      assert.equal(filesIn(ask({ file_containing_symbol: symbol }))[0], file);
    });
  }

  test('finds every message and method', () => {
    const names = messageNames().map((name) => (name.startsWith('grpc.') ? name : `inference.${name}`));
    const methods = METHODS.map(({ service, name }) => `${service}.${name}`);
    for (const symbol of [...names, ...methods]) {
      assert.ok(ask({ file_containing_symbol: symbol }).file_descriptor_response, symbol);
    }
  });

  test('says what it does not have', () => {
    const code = (question: Omit<ReflectionRequest, 'host'>) => ask(question).error_response?.error_code;
    assert.equal(code({ file_by_filename: 'other.proto' }), 5);
    assert.equal(code({ file_containing_symbol: 'inference' }), 5);
    assert.equal(code({ file_containing_symbol: '' }), 5);
    assert.equal(
      code({ file_containing_extension: { containing_type: 'inference.ModelConfig', extension_number: 1 } }),
      5,
    );
    assert.equal(code({ all_extension_numbers_of_type: 'inference.NoSuch' }), 5);
    assert.equal(code({}), 12);
    assert.deepEqual(ask({ all_extension_numbers_of_type: 'inference.ModelConfig' }), {
      valid_host: 'h',
      original_request: { host: 'h', all_extension_numbers_of_type: 'inference.ModelConfig' },
      all_extension_numbers_response: { base_type_name: 'inference.ModelConfig', extension_number: [] },
    });
  });
});
