import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import protobuf from 'protobufjs';
import { randomModelConfig } from '../../domain/random-model-config.ts';
import { createPrng } from '../../lib/prng.ts';
import { decodeMessage } from './decode-message.ts';
import { encodeMessage } from './encode-message.ts';
import { messageNames } from './message-table.ts';
import { ProtoError } from './proto-error.ts';
import { randomProtoMessage } from './random-message.ts';
import { protoPath } from './test-proto-path.ts';

const root = new protobuf.Root().loadSync(
  ['grpc_service.proto', 'health.proto', 'reflection.proto', 'reflection_v1alpha.proto'].map(protoPath),
  { keepCase: true },
);

/** protobufjs's idea of the same message. */
function theirs(name: string): protobuf.Type {
  return root.lookupType(name.startsWith('grpc.') ? name : `inference.${name}`);
}

/** protobufjs takes no bigint. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]));
}

/** Bigints, and map keys that were, as the nearest numbers. */
function rounded(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(rounded);
  const members = Object.entries(value).map(([key, member]) => [
    /^\d{17,}$/.test(key) ? String(Number(key)) : key,
    rounded(member),
  ]);
  return Object.fromEntries(members);
}

const SHOWN: protobuf.IConversionOptions = { longs: String, enums: String, defaults: true, oneofs: false };

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}

describe('every message', () => {
  for (const name of messageNames()) {
    test(`${name} goes both ways between us and protobufjs`, () => {
      const type = theirs(name);
      const prng = createPrng(name.length * 7919);
      for (let i = 0; i < 25; i++) {
        const message = randomProtoMessage(name, prng);
        const made = type.fromObject(plain(message) as Record<string, unknown>);
        const decoded = type.decode(encodeMessage(name, message));
        assert.deepEqual(type.toObject(decoded, SHOWN), type.toObject(made, SHOWN));
        assert.deepEqual(decodeMessage(name, Buffer.from(type.encode(made).finish())), message);
        assert.deepEqual(decodeMessage(name, encodeMessage(name, message)), message);
      }
    });
  }

  test('can be a ModelConfig as the server holds it, whose integers are all numbers', () => {
    const prng = createPrng(5);
    for (let i = 0; i < 100; i++) {
      const config = randomModelConfig(prng);
      assert.deepEqual(rounded(decodeMessage('ModelConfig', encodeMessage('ModelConfig', config))), config);
    }
  });
});

describe('decoding', () => {
  test('fills in defaults and leaves messages and oneofs out', () => {
    assert.deepEqual(decodeMessage('RepositoryIndexRequest', Buffer.alloc(0)), {
      repository_name: '',
      ready: false,
    });
    assert.deepEqual(decodeMessage('ModelConfigResponse', Buffer.alloc(0)), {});
    assert.deepEqual(decodeMessage('grpc.health.v1.HealthCheckResponse', Buffer.alloc(0)), {
      status: 'UNKNOWN',
    });
  });

  test('takes lists packed, unpacked and mixed', () => {
    const shape = (text: string) =>
      (decodeMessage('ModelMetadataResponse.TensorMetadata', hex(text)) as { shape: number[] }).shape;
    assert.deepEqual(shape('1a 03 01 ac 02'), [1, 300]);
    assert.deepEqual(shape('18 01 18 ac 02'), [1, 300]);
    assert.deepEqual(shape('18 01 1a 02 02 03 18 04'), [1, 2, 3, 4]);
  });

  test('lets the last member of a oneof win', () => {
    assert.deepEqual(decodeMessage('InferParameter', hex('08 01 10 05')), { int64_param: 5 });
    assert.deepEqual(decodeMessage('InferParameter', hex('10 05 08 00')), { bool_param: false });
  });

  test('merges a message that comes twice', () => {
    const twice = Buffer.concat([
      encodeMessage('ModelConfigResponse', { config: { name: 'a' } as never }),
      encodeMessage('ModelConfigResponse', { config: { platform: 'p' } as never }),
    ]);
    const { config } = decodeMessage('ModelConfigResponse', twice);
    assert.equal(config?.name, 'a');
    assert.equal(config?.platform, 'p');
  });

  test('skips what it does not know, groups too, and wire types that do not fit', () => {
    const live = (text: string) => decodeMessage('ServerLiveResponse', hex(text));
    assert.deepEqual(live('10 05 08 01'), { live: true });
    assert.deepEqual(live('11 0000000000000000 15 00000000 1a 01 00 08 01'), { live: true });
    assert.deepEqual(live('13 18 05 1b 18 01 1c 14 08 01'), { live: true });
    assert.deepEqual(live('0a 01 00'), { live: false });
  });

  test('keeps unknown enum values as numbers, and writes them back', () => {
    const message = decodeMessage('grpc.health.v1.HealthCheckResponse', hex('08 09'));
    assert.deepEqual(message, { status: 9 });
    assert.deepEqual(encodeMessage('grpc.health.v1.HealthCheckResponse', message), hex('08 09'));
  });

  test('makes __proto__ a key like any other', () => {
    const settings = JSON.parse('{"__proto__":{"value":["x"]},"constructor":{"value":[]}}');
    const decoded = decodeMessage(
      'TraceSettingResponse',
      encodeMessage('TraceSettingResponse', { settings }),
    );
    assert.deepEqual(Object.keys(decoded.settings), ['__proto__', 'constructor']);
    assert.deepEqual(decoded.settings, settings);
  });

  for (const [what, text] of [
    ['a cut varint', '08 80'],
    ['a cut string', '0a 05 61'],
    ['a length beyond the message', '0a ff 01'],
    ['a length beyond 32 bits', '0a 85 80 80 80 10'],
    ['field number 0', '00 01'],
    ['wire type 6', '0e 00'],
    ['wire type 7', '0f 00'],
    ['the end of a group that did not begin', '0c'],
    ['a group that does not end', '13 18 05'],
    ['a group that ends as another', '13 1c'],
    ['a varint of eleven bytes', '10 ff ff ff ff ff ff ff ff ff ff 01'],
    ['a tag of six bytes', '8a 80 80 80 80 00 00'],
    ['a string that is not UTF-8', '0a 01 ff'],
    ['a string with half a surrogate pair', '0a 03 ed a0 80'],
    ['a cut fixed64', '11 00 00'],
    ['a cut fixed32', '15 00'],
  ] as const) {
    test(`refuses ${what}`, () => {
      assert.throws(() => decodeMessage('ModelReadyRequest', hex(text)), ProtoError);
    });
  }

  test('refuses groups deeper than 100', () => {
    const nested = (depth: number) => Buffer.concat([Buffer.alloc(depth, 0x1b), Buffer.alloc(depth, 0x1c)]);
    assert.doesNotThrow(() => decodeMessage('ServerLiveRequest', nested(100)));
    assert.throws(() => decodeMessage('ServerLiveRequest', nested(101)), ProtoError);
  });

  test('throws nothing but ProtoError, whatever is done to the bytes', () => {
    const prng = createPrng(77);
    const names = messageNames();
    for (let i = 0; i < 3000; i++) {
      const name = prng.pick(names);
      const bytes = Buffer.from(encodeMessage(name, randomProtoMessage(name, prng)));
      for (let j = prng.integer(1, 4); j > 0 && bytes.length > 0; j--) {
        bytes[prng.integer(0, bytes.length - 1)] = prng.integer(0, 255);
      }
      const cut = prng.boolean() ? bytes : bytes.subarray(0, prng.integer(0, bytes.length));
      try {
        decodeMessage(name, cut);
      } catch (thrown) {
        assert.ok(thrown instanceof ProtoError, String(thrown));
      }
    }
  });
});

describe('encoding', () => {
  test('leaves defaults out, but not those of a oneof', () => {
    assert.equal(encodeMessage('RepositoryIndexRequest', { repository_name: '', ready: false }).length, 0);
    assert.deepEqual(encodeMessage('InferParameter', { bool_param: false }), hex('08 00'));
    assert.equal(encodeMessage('MemoryUsage', { type: '', id: 0n, byte_size: 0 }).length, 0);
  });

  test('writes fields in the order of their numbers', () => {
    assert.deepEqual(
      encodeMessage('ModelInstanceGroup', { kind: 'KIND_CPU', count: 2, name: 'g' }),
      hex('0a 01 67 10 02 20 02'),
    );
  });

  test('clamps integers that were read into a number', () => {
    const roundTrip = (value: number) =>
      decodeMessage('MemoryUsage', encodeMessage('MemoryUsage', { byte_size: value, id: value })) as {
        id: bigint;
        byte_size: bigint;
      };
    assert.deepEqual(roundTrip(2 ** 64), { type: '', id: 2n ** 63n - 1n, byte_size: 2n ** 64n - 1n });
    assert.deepEqual(roundTrip(2 ** 63), { type: '', id: 2n ** 63n - 1n, byte_size: 2n ** 63n });
    assert.deepEqual(roundTrip(-5), { type: '', id: -5, byte_size: 0 });
  });

  test('moves messages along whose length needs more than one byte', () => {
    for (const length of [0, 1, 120, 127, 128, 129, 16_383, 16_384, 70_000]) {
      const settings = { k: { value: ['v'.repeat(length)] } };
      assert.deepEqual(
        decodeMessage('TraceSettingResponse', encodeMessage('TraceSettingResponse', { settings })),
        {
          settings,
        },
      );
    }
  });
});
