import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import protobuf from 'protobufjs';
import { createPrng, type Prng } from '../../lib/prng.ts';
import {
  decodeInferRequest,
  type ModelInferRequest,
  type RequestParameters,
} from './decode-infer-request.ts';
import type { ProtoMessage } from './decode-message.ts';
import { encodeMessage } from './encode-message.ts';
import { ProtoError } from './proto-error.ts';
import { randomProtoMessage } from './random-message.ts';
import { protoPath } from './test-proto-path.ts';
import type { ContentName, TypedContents } from './typed-contents.ts';

const type = new protobuf.Root()
  .loadSync(protoPath('grpc_service.proto'), { keepCase: true })
  .lookupType('inference.ModelInferRequest');

function cut(bytes: Buffer, prng: Prng, count: number): Buffer[] {
  const places = Array.from({ length: count }, () => prng.integer(0, bytes.length)).sort((a, b) => a - b);
  return [0, ...places].map((place, i) => bytes.subarray(place, places[i] ?? bytes.length));
}

const ELEMENTS: Readonly<Record<ContentName, (piece: Buffer) => unknown[]>> = {
  bool: (piece) => Array.from(piece, (byte) => byte === 1),
  int: (piece) => Array.from({ length: piece.length / 4 }, (_, i) => piece.readInt32LE(i * 4)),
  int64: (piece) => Array.from({ length: piece.length / 8 }, (_, i) => String(piece.readBigInt64LE(i * 8))),
  uint: (piece) => Array.from({ length: piece.length / 4 }, (_, i) => piece.readUInt32LE(i * 4)),
  uint64: (piece) => Array.from({ length: piece.length / 8 }, (_, i) => String(piece.readBigUInt64LE(i * 8))),
  fp32: (piece) => Array.from({ length: piece.length / 4 }, (_, i) => piece.readFloatLE(i * 4)),
  fp64: (piece) => Array.from({ length: piece.length / 8 }, (_, i) => piece.readDoubleLE(i * 8)),
  bytes: (piece) => [piece.toString('hex')],
};

function shownContents(contents: TypedContents): unknown {
  return Object.fromEntries(
    [...contents].map(([name, pieces]) => [`${name}_contents`, pieces.flatMap(ELEMENTS[name])]),
  );
}

function shownParameters(parameters: RequestParameters): unknown {
  return Object.fromEntries(
    [...(parameters ?? [])].map(([name, parameter]) => [
      name,
      parameter.kind === 'unset'
        ? {}
        : {
            [`${parameter.kind}_param`]:
              typeof parameter.value === 'bigint' ? String(parameter.value) : parameter.value,
          },
    ]),
  );
}

/** As protobufjs shows it, without defaults. */
function shown(request: ModelInferRequest): unknown {
  return {
    model_name: request.modelName,
    model_version: request.modelVersion,
    id: request.id,
    parameters: shownParameters(request.parameters),
    inputs: request.inputs.map((input) => ({
      name: input.name,
      datatype: input.datatype,
      shape: input.shape,
      parameters: shownParameters(input.parameters),
      contents: input.contents === undefined ? undefined : shownContents(input.contents),
    })),
    outputs: request.outputs.map(({ name, parameters }) => ({
      name,
      parameters: shownParameters(parameters),
    })),
    raw_input_contents: request.rawContents.map((data) => Buffer.concat(data).toString('hex')),
  };
}

/** protobufjs's reading of the same bytes in the same form. */
function shownTheirs(bytes: Buffer): unknown {
  const object = type.toObject(type.decode(bytes), { longs: String, bytes: Array, defaults: true });
  const hexOf = (list: number[]) => Buffer.from(list).toString('hex');
  return {
    ...object,
    inputs: object.inputs.map((input: ProtoMessage) => ({
      ...input,
      shape: (input.shape as string[]).map(Number),
      contents: input.contents === null ? undefined : theirContents(input.contents as ProtoMessage, hexOf),
    })),
    raw_input_contents: object.raw_input_contents.map(hexOf),
  };
}

function theirContents(contents: ProtoMessage, hexOf: (list: number[]) => string): unknown {
  const lists = Object.entries(contents as Record<string, unknown[]>).filter(([, list]) => list.length > 0);
  return Object.fromEntries(
    lists.map(([name, list]) => [name, name === 'bytes_contents' ? (list as number[][]).map(hexOf) : list]),
  );
}

describe('a random ModelInferRequest', () => {
  test('is read as protobufjs reads it, whole and in pieces', () => {
    const prng = createPrng(2026);
    for (let i = 0; i < 400; i++) {
      const message = randomProtoMessage('ModelInferRequest', prng);
      if (prng.boolean(0.3)) (message.raw_input_contents as Buffer[]).push(Buffer.alloc(70_000, i));
      const bytes = Buffer.from(encodeMessage('ModelInferRequest', message));
      const expected = shownTheirs(bytes);
      assert.deepEqual(shown(decodeInferRequest(bytes)), expected);
      assert.deepEqual(shown(decodeInferRequest([bytes])), expected);
      assert.deepEqual(shown(decodeInferRequest(cut(bytes, prng, prng.integer(1, 9)))), expected);
    }
  });

  test('throws nothing but ProtoError when it is damaged, and the same for pieces as for the whole', () => {
    const prng = createPrng(9);
    const outcome = (message: Buffer | readonly Buffer[]): unknown => {
      try {
        return shown(decodeInferRequest(message));
      } catch (thrown) {
        assert.ok(thrown instanceof ProtoError, String(thrown));
        return 'refused';
      }
    };
    for (let i = 0; i < 2000; i++) {
      const message = randomProtoMessage('ModelInferRequest', prng, 2);
      if (i % 4 === 0) (message.raw_input_contents as Buffer[]).push(Buffer.alloc(70_000));
      const bytes = Buffer.from(encodeMessage('ModelInferRequest', message));
      for (let j = prng.integer(1, 4); j > 0 && bytes.length > 0; j--) {
        bytes[prng.integer(0, Math.min(bytes.length, 400) - 1)] = prng.integer(0, 255);
      }
      const damaged = prng.boolean() ? bytes : bytes.subarray(0, prng.integer(0, bytes.length));
      assert.deepEqual(outcome(cut(damaged, prng, 5)), outcome(damaged));
    }
  });
});

describe('raw tensors', () => {
  const request = {
    model_name: 'm',
    inputs: [{ name: 'X', datatype: 'UINT8', shape: [1, 100_000] }],
    raw_input_contents: [Buffer.alloc(100_000, 7), Buffer.alloc(0), Buffer.from('ab')],
  };
  const bytes = Buffer.from(encodeMessage('ModelInferRequest', request));

  test('are views on one message', () => {
    const { rawContents } = decodeInferRequest(bytes);
    assert.deepEqual(
      rawContents.map((data) => data.map((view) => view.length)),
      [[100_000], [], [2]],
    );
    assert.equal(rawContents[0]![0]!.buffer, bytes.buffer);
  });

  test('that lie in several pieces are several views', () => {
    const pieces = [0, 1, 2, 3, 4, 5, 6].map((i) => bytes.subarray(i * 16_384, (i + 1) * 16_384));
    const { rawContents, inputs } = decodeInferRequest(pieces);
    assert.equal(rawContents[0]!.length, 7);
    assert.ok(rawContents[0]!.every((view) => view.buffer === bytes.buffer));
    assert.deepEqual(Buffer.concat(rawContents[0]!), request.raw_input_contents[0]);
    assert.deepEqual(Buffer.concat(rawContents[2]!).toString(), 'ab');
    assert.deepEqual(inputs[0]!.shape, [1, 100_000]);
  });

  test('survive unknown fields and groups around them', () => {
    const group = Buffer.from('7b78017c', 'hex');
    const unknown = Buffer.from('78017900000000000000007d00000000', 'hex');
    for (const extra of [group, unknown]) {
      const pieces = [extra, bytes.subarray(0, 50), bytes.subarray(50), extra];
      assert.deepEqual(shown(decodeInferRequest(pieces)), shown(decodeInferRequest(bytes)));
    }
  });
});

describe('a message of a client', () => {
  const decode = (hex: string) => decodeInferRequest(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

  test('may hold negative and unpacked dimensions', () => {
    const shape = (hex: string) => decode(hex).inputs[0]!.shape;
    assert.deepEqual(shape('2a 0d 1a 0b ff ff ff ff ff ff ff ff ff 01 10'), [-1, 16]);
    assert.deepEqual(shape('2a 04 18 02 18 03'), [2, 3]);
  });

  test('keeps the last of two parameters with the same key', () => {
    const entry = (value: string) => `22 07 0a 01 6b 12 02 ${value}`;
    const { parameters } = decode(`${entry('10 01')} ${entry('08 01')}`);
    assert.deepEqual([...parameters!], [['k', { kind: 'bool', value: true }]]);
  });

  test('has a parameter without a value as unset', () => {
    assert.deepEqual([...decode('22 03 0a 01 6b').parameters!], [['k', { kind: 'unset' }]]);
    assert.deepEqual([...decode('22 05 0a 01 6b 12 00').parameters!], [['k', { kind: 'unset' }]]);
  });

  test('adds up contents that come twice, packed and not', () => {
    const { contents } = decode('2a 0d 2a 04 12 02 01 02 2a 05 10 03 12 01 04').inputs[0]!;
    assert.deepEqual(shownContents(contents!), { int_contents: [1, 2, 3, 4] });
  });

  test('may hold long lists that are not packed, in turns', () => {
    const ints = Array.from({ length: 100 }, (_, i) => `10 ${i.toString(16).padStart(2, '0')}`).join('');
    const half = `${ints} 20 05 35 0000803f`;
    const length = (text: string) => {
      const bytes = text.replaceAll(' ', '').length / 2;
      return `${((bytes & 0x7f) | 0x80).toString(16)} ${(bytes >> 7).toString(16).padStart(2, '0')}`;
    };
    const contents = `${half} ${half}`;
    const field = `2a ${length(contents)} ${contents}`;
    const shownLists = shownContents(decode(`2a ${length(field)} ${field}`).inputs[0]!.contents!);
    const numbers = Array.from({ length: 100 }, (_, i) => i);
    assert.deepEqual(shownLists, {
      int_contents: [...numbers, ...numbers],
      uint_contents: [5, 5],
      fp32_contents: [1, 1],
    });
  });

  test('has contents even when they are empty', () => {
    assert.equal(decode('2a 02 2a 00').inputs[0]!.contents?.size, 0);
    assert.equal(decode('2a 00').inputs[0]!.contents, undefined);
  });

  test('is refused when a name is not UTF-8', () => {
    assert.throws(() => decode('0a 01 ff'), ProtoError);
    assert.throws(() => decode('1a 02 c3 28'), ProtoError);
    assert.equal(decode('0a 02 c3 a9').modelName, 'é');
  });

  test('is refused when a list of floats is cut', () => {
    assert.throws(() => decode('2a 07 2a 05 32 03 00 00 00'), ProtoError);
  });

  test('gives each of many names as it was sent', () => {
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 5000; i++) {
        const name = `name${i}`;
        const bytes = encodeMessage('ModelInferRequest', { model_name: name });
        assert.equal(decodeInferRequest(Buffer.from(bytes)).modelName, name);
      }
    }
  });
});
