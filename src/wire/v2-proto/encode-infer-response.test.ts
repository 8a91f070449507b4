import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ModelView } from '../../domain/model-view.ts';
import type { InferResponse, ParameterValue } from '../../domain/request.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { createPrng } from '../../lib/prng.ts';
import { decodeMessage } from './decode-message.ts';
import {
  type EncodedMessage,
  encodeInferResponse,
  encodeStreamInferResponse,
  encodeStreamNotice,
  type StreamNotice,
} from './encode-infer-response.ts';
import type { OutputOptions } from './to-infer-request.ts';

const MODEL: ModelView = {
  name: 'm',
  version: 1,
  maxBatchSize: 8,
  inputs: [],
  outputs: [],
  isDecoupled: false,
  labelsOf: (name) => (name === 'S' ? ['apple', 'banana', 'cherry'] : undefined),
};
const PLAIN: OutputOptions = new Map();

function output(members: Partial<OutputTensor> & { bytes?: Buffer } = {}): OutputTensor {
  const { bytes = Buffer.from('abcd'), ...rest } = members;
  return { name: 'Y', datatype: 'UINT8', shape: [1, 4], data: [bytes], byteLength: bytes.length, ...rest };
}

function response(members: Partial<InferResponse> = {}): InferResponse {
  return { modelName: 'm', modelVersion: 1, id: '', parameters: undefined, outputs: [output()], ...members };
}

function joined(encoded: EncodedMessage, headroomBytes = 0): Buffer {
  const bytes = Buffer.concat(encoded.parts).subarray(headroomBytes);
  assert.equal(bytes.length, encoded.byteLength);
  return bytes;
}

/** What a client reads; the generic codec is tested against protobufjs. */
function read(encoded: EncodedMessage, headroomBytes = 0): object {
  return decodeMessage('ModelInferResponse', joined(encoded, headroomBytes));
}

function notice(members: Partial<StreamNotice>): EncodedMessage {
  return encodeStreamNotice({
    errorMessage: '',
    id: '',
    modelName: '',
    modelVersion: '',
    isFinal: undefined,
    ...members,
  });
}

function readStream(encoded: EncodedMessage, headroomBytes = 0): object {
  return decodeMessage('ModelStreamInferResponse', joined(encoded, headroomBytes));
}

describe('a response', () => {
  test('is one buffer with its fields in order', () => {
    const encoded = encodeInferResponse(response({ id: 'i' }), { outputs: PLAIN, model: MODEL });
    assert.equal(encoded.parts.length, 1);
    assert.equal(
      joined(encoded).toString('hex'),
      ['0a016d', '120131', '1a0169', '2a0e', '0a0159', '120555494e5438', '1a020104', '320461626364'].join(''),
    );
  });

  test('has a raw entry for each output, also for an empty one', () => {
    const outputs = [output(), output({ name: 'Z', shape: [1, 0], data: [], byteLength: 0 })];
    assert.deepEqual(read(encodeInferResponse(response({ outputs }), { outputs: PLAIN, model: MODEL })), {
      model_name: 'm',
      model_version: '1',
      id: '',
      parameters: {},
      outputs: [
        { name: 'Y', datatype: 'UINT8', shape: [1, 4], parameters: {} },
        { name: 'Z', datatype: 'UINT8', shape: [1, 0], parameters: {} },
      ],
      raw_output_contents: [Buffer.from('abcd'), Buffer.alloc(0)],
    });
  });

  test('carries parameters of every type', () => {
    const parameters = new Map<string, ParameterValue>([
      ['b', false],
      ['i', -(2n ** 63n)],
      ['s', 'é'],
      ['d', 0],
      ['empty', ''],
    ]);
    const read1 = read(encodeInferResponse(response({ parameters }), { outputs: PLAIN, model: MODEL }));
    assert.deepEqual((read1 as { parameters: object }).parameters, {
      b: { bool_param: false },
      i: { int64_param: -(2n ** 63n) },
      s: { string_param: 'é' },
      d: { double_param: 0 },
      empty: { string_param: '' },
    });
  });

  test('hands large tensors on as views and copies small ones', () => {
    const large = Buffer.alloc(20_000, 1);
    const pieces = [Buffer.alloc(9_000, 2), Buffer.alloc(9_000, 3)];
    const small = [Buffer.from('ab'), Buffer.from('c')];
    const outputs = [
      output({ name: 'A', bytes: large }),
      output({ name: 'B', data: small, byteLength: 3 }),
      output({ name: 'C', data: pieces, byteLength: 18_000 }),
    ];
    const encoded = encodeInferResponse(response({ outputs }), { outputs: PLAIN, model: MODEL });
    assert.equal(encoded.parts.length, 5);
    assert.equal(encoded.parts[1], large);
    assert.equal(encoded.parts[3], pieces[0]);
    assert.equal(encoded.parts[4], pieces[1]);
    assert.deepEqual((read(encoded) as { raw_output_contents: Buffer[] }).raw_output_contents, [
      large,
      Buffer.from('abc'),
      Buffer.concat(pieces),
    ]);
  });

  test('leaves an output in shared memory empty and without parameters', () => {
    const outputs: OutputOptions = new Map([
      ['Y', { classCount: 0, sharedMemory: { region: 'r', offset: 0, byteSize: 4 } }],
    ]);
    const message = read(encodeInferResponse(response(), { outputs, model: MODEL })) as {
      outputs: object[];
      raw_output_contents: Buffer[];
    };
    assert.deepEqual(message.outputs, [{ name: 'Y', datatype: 'UINT8', shape: [1, 4], parameters: {} }]);
    assert.deepEqual(message.raw_output_contents, [Buffer.alloc(0)]);
  });

  test('turns a classification into BYTES', () => {
    const scores = output({ name: 'S', shape: [1, 3], bytes: Buffer.from([5, 9, 1]) });
    const outputs: OutputOptions = new Map([['S', { classCount: 2 }]]);
    const message = read(encodeInferResponse(response({ outputs: [scores] }), { outputs, model: MODEL })) as {
      outputs: object[];
      raw_output_contents: Buffer[];
    };
    assert.deepEqual(message.outputs, [{ name: 'S', datatype: 'BYTES', shape: [1, 2], parameters: {} }]);
    const [bytes] = message.raw_output_contents;
    assert.equal(bytes!.toString('latin1'), '\n\0\0\x009:1:banana\t\0\0\x005:0:apple');
  });

  test('beyond what gRPC can carry is refused', () => {
    // The bytes are never touched, so the tensor only has to say that it is that large.
    const outputs = [output({ data: [], byteLength: 2 ** 31 })];
    assert.throws(() => encodeInferResponse(response({ outputs }), { outputs: PLAIN, model: MODEL }), {
      code: 'INVALID_ARG',
      message: "Response has byte size 2147483676 which exceeds gRPC's byte size limit 2147483647.",
    });
  });

  test('leaves room in front for the caller', () => {
    for (const bytes of [Buffer.from('abcd'), Buffer.alloc(50_000)]) {
      const answer = response({ outputs: [output({ bytes })] });
      const options = { outputs: PLAIN, model: MODEL };
      const encoded = encodeInferResponse(answer, { ...options, headroomBytes: 5 });
      assert.deepEqual(read(encoded, 5), read(encodeInferResponse(answer, options)));
    }
  });
});

describe('a message of a stream', () => {
  test('wraps the response, whatever its size, and says whether it is the last', () => {
    const prng = createPrng(3);
    for (const size of [0, 50, 90, 100, 16_000, 16_384, 16_385, 3_000_000]) {
      const isFinal = prng.boolean();
      const answer = response({ id: 'i', outputs: [output({ bytes: Buffer.alloc(size, 1) })] });
      const unary = read(encodeInferResponse(answer, { outputs: PLAIN, model: MODEL }));
      for (const headroomBytes of [0, 5]) {
        const encoded = encodeStreamInferResponse(answer, {
          outputs: PLAIN,
          model: MODEL,
          isFinal,
          headroomBytes,
        });
        assert.deepEqual(readStream(encoded, headroomBytes), {
          error_message: '',
          infer_response: { ...unary, parameters: { triton_final_response: { bool_param: isFinal } } },
        });
      }
    }
  });

  test('may be an error before execution, which has only an id', () => {
    assert.deepEqual(readStream(notice({ errorMessage: 'no such', id: 'u' })), {
      error_message: 'no such',
      infer_response: {
        model_name: '',
        model_version: '',
        id: 'u',
        parameters: {},
        outputs: [],
        raw_output_contents: [],
      },
    });
    assert.equal(joined(notice({})).toString('hex'), '1200');
  });

  test('may be an error of the model, with its name and whether it was the last', () => {
    const encoded = notice({
      errorMessage: 'e'.repeat(300),
      id: 'i',
      modelName: 'm',
      isFinal: false,
      headroomBytes: 5,
    });
    const message = readStream(encoded, 5) as { error_message: string; infer_response: object };
    assert.equal(message.error_message.length, 300);
    assert.deepEqual(message.infer_response, {
      model_name: 'm',
      model_version: '',
      id: 'i',
      parameters: { triton_final_response: { bool_param: false } },
      outputs: [],
      raw_output_contents: [],
    });
  });

  test('may be an empty last response', () => {
    assert.deepEqual(readStream(notice({ id: 'e0', modelName: 'py_repeat', isFinal: true })), {
      error_message: '',
      infer_response: {
        model_name: 'py_repeat',
        model_version: '',
        id: 'e0',
        parameters: { triton_final_response: { bool_param: true } },
        outputs: [],
        raw_output_contents: [],
      },
    });
  });
});
