// The .proto files, what is generated from them, and the ModelConfig schema that is kept by hand say the same.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor.js';
import { MODEL_CONFIG_ENUMS } from '../src/domain/model-config-enums.ts';
import { MODEL_CONFIG_MESSAGES } from '../src/domain/model-config-schema.ts';
import { FILE_DESCRIPTORS } from '../src/wire/v2-proto/generated/file-descriptors.ts';
import { inRoot } from './support/paths.ts';

const GENERATED = 'src/wire/v2-proto/generated';

interface Generator {
  generateFiles(): Map<string, string>;
}

describe('generated protobuf code', () => {
  test('is what the generator writes now', async () => {
    const generator: Generator = await import(pathToFileURL(inRoot('scripts/generate-proto.mjs')).href);
    const files = generator.generateFiles();
    const advice = 'proto/ and the generated code differ: run npm run generate:proto';
    for (const [path, text] of files) {
      assert.ok(readFileSync(inRoot(path), 'utf8') === text, `${path}: ${advice}`);
    }
    assert.deepEqual(
      readdirSync(inRoot(GENERATED)).map((name) => `${GENERATED}/${name}`),
      [...files.keys()].sort(),
      advice,
    );
  });
});

describe('file descriptors', () => {
  for (const { name, base64 } of FILE_DESCRIPTORS) {
    test(`${name} is proto3 and describes maps and oneofs as protoc does`, () => {
      const file = descriptor.FileDescriptorProto.decode(Buffer.from(base64, 'base64')).toJSON();
      assert.equal(file.name, name);
      assert.equal(file.syntax, 'proto3');
      for (const message of file.messageType) checkMessage(message, `.${file.package}`);
    });
  }

  test('name the types and streams of a method', () => {
    const text = FILE_DESCRIPTORS.find(({ name }) => name === 'grpc_service.proto')?.base64 ?? '';
    const file = descriptor.FileDescriptorProto.decode(Buffer.from(text, 'base64')).toJSON();
    const methods: { name: string }[] = file.service[0].method;
    assert.equal(methods.length, 20);
    assert.deepEqual(
      methods.find(({ name }) => name === 'ModelStreamInfer'),
      {
        name: 'ModelStreamInfer',
        inputType: '.inference.ModelInferRequest',
        outputType: '.inference.ModelStreamInferResponse',
        clientStreaming: true,
        serverStreaming: true,
      },
    );
  });

  interface Described {
    name: string;
    field?: { name: string; label: string; typeName?: string; oneofIndex?: number; jsonName: string }[];
    nestedType?: Described[];
    oneofDecl?: object[];
    options?: { mapEntry?: boolean };
  }

  function checkMessage(message: Described, scope: string): void {
    const { field: fields = [], nestedType = [], oneofDecl = [] } = message;
    for (const entry of nestedType.filter(({ options }) => options?.mapEntry === true)) {
      const users = fields.filter(({ typeName }) => typeName === `${scope}.${message.name}.${entry.name}`);
      assert.deepEqual(
        users.map(({ label }) => label),
        ['LABEL_REPEATED'],
      );
      assert.deepEqual(
        entry.field?.map(({ name }) => name),
        ['key', 'value'],
      );
    }
    const indexes = new Set(fields.flatMap(({ oneofIndex }) => oneofIndex ?? []));
    assert.equal(indexes.size, oneofDecl.length);
    for (const { jsonName } of fields) assert.match(jsonName, /^[a-z][a-zA-Z0-9]*$/);
    for (const nested of nestedType) checkMessage(nested, `${scope}.${message.name}`);
  }
});

describe('model_config.proto', () => {
  const root = new protobuf.Root().loadSync(inRoot('proto/model_config.proto'), { keepCase: true });
  root.resolveAll();
  const declared = allNested(root.lookup('inference') as protobuf.Namespace);
  const prefix = '.inference.';
  const nameOf = (item: protobuf.ReflectionObject) => item.fullName.slice(prefix.length);

  test('has the messages of the schema, field for field', () => {
    const fromProto = declared
      .filter((item) => item instanceof protobuf.Type)
      .map((type) => [nameOf(type), type.fieldsArray.map(describeField)] as const);
    const fromSchema = [...MODEL_CONFIG_MESSAGES.values()].map(
      ({ name, fields }) =>
        [
          name,
          fields.map(
            (field) =>
              `${field.number} ${field.name} ${field.map === undefined ? '' : `map ${field.map.key.type} `}${
                field.repeated ? 'repeated ' : ''
              }${typeText(field.map?.value ?? field)} ${field.oneof ?? ''}`,
          ),
        ] as const,
    );
    assert.deepEqual(Object.fromEntries(fromProto), Object.fromEntries(fromSchema));
  });

  test('has the enums of the schema, value for value', () => {
    const fromProto = declared
      .filter((item) => item instanceof protobuf.Enum)
      .map((type) => [nameOf(type), { ...type.values }]);
    assert.deepEqual(Object.fromEntries(fromProto), MODEL_CONFIG_ENUMS);
  });

  function describeField(field: protobuf.Field): string {
    const type = field.resolvedType === null ? field.type : nameOf(field.resolvedType);
    const key = field instanceof protobuf.MapField ? `map ${field.keyType} ` : '';
    return `${field.id} ${field.name} ${key}${field.repeated ? 'repeated ' : ''}${type} ${field.partOf?.name ?? ''}`;
  }

  function typeText(value: { type: string; typeName: string }): string {
    return value.typeName === '' ? value.type : value.typeName;
  }
});

function allNested(namespace: protobuf.NamespaceBase): protobuf.ReflectionObject[] {
  return namespace.nestedArray.flatMap((item) => [
    item,
    ...(item instanceof protobuf.Namespace || item instanceof protobuf.Type ? allNested(item) : []),
  ]);
}
