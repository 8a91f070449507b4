// Server reflection: which file declares what, read once from the generated descriptors, and the answer to each
// question. Called by the gRPC frontend for both versions of the service, whose messages are the same.

import { FILE_DESCRIPTORS } from './generated/file-descriptors.ts';
import { GRPC_NOT_FOUND, GRPC_UNIMPLEMENTED } from './grpc-status.ts';
import type { ReflectionRequest, ReflectionResponse } from './messages.ts';
import { ProtoReader } from './proto-reader.ts';

type Answer = Omit<ReflectionResponse, 'valid_host' | 'original_request'>;

interface DescribedFile {
  readonly bytes: Buffer;
  readonly dependencies: string[];
  readonly symbols: string[];
  readonly messages: string[];
  readonly services: string[];
}

/** Where names lie in FileDescriptorProto, DescriptorProto, EnumDescriptorProto and ServiceDescriptorProto. */
const FILE = { package: 2, dependency: 3, message: 4, enum: 5, service: 6 } as const;
const MESSAGE = { name: 1, field: 2, nested: 3, enum: 4, oneof: 8 } as const;
const NAME = 1;
/** Values of an enum and methods of a service have the same number. */
const MEMBER = 2;

const files = new Map<string, DescribedFile>();
const fileBySymbol = new Map<string, DescribedFile>();
const messages = new Set<string>();
for (const { name, base64 } of FILE_DESCRIPTORS) {
  const file = describeFile(Buffer.from(base64, 'base64'));
  files.set(name, file);
  for (const symbol of file.symbols) fileBySymbol.set(symbol, file);
  for (const message of file.messages) messages.add(message);
}

/** Full names, sorted. */
export const SERVICE_NAMES: readonly string[] = [...files.values()].flatMap((file) => file.services).sort();

/** Always an answer; what is wrong with the question is in `error_response`. */
export function answerReflection(request: ReflectionRequest): ReflectionResponse {
  return { valid_host: request.host, original_request: request, ...answerTo(request) };
}

function answerTo(request: ReflectionRequest): Answer {
  if (request.file_by_filename !== undefined) {
    return fileAnswer(files.get(request.file_by_filename), `File not found: ${request.file_by_filename}`);
  }
  if (request.file_containing_symbol !== undefined) {
    const symbol = request.file_containing_symbol;
    return fileAnswer(fileBySymbol.get(symbol), `Symbol not found: ${symbol}`);
  }
  if (request.file_containing_extension !== undefined) {
    const { containing_type, extension_number } = request.file_containing_extension;
    return error(GRPC_NOT_FOUND, `Extension not found: ${containing_type} ${extension_number}`);
  }
  if (request.all_extension_numbers_of_type !== undefined) {
    const type = request.all_extension_numbers_of_type;
    if (!messages.has(type)) return error(GRPC_NOT_FOUND, `Type not found: ${type}`);
    return { all_extension_numbers_response: { base_type_name: type, extension_number: [] } };
  }
  if (request.list_services !== undefined) {
    return { list_services_response: { service: SERVICE_NAMES.map((name) => ({ name })) } };
  }
  return error(GRPC_UNIMPLEMENTED, 'message_request is not set');
}

function error(code: number, message: string): Answer {
  return { error_response: { error_code: code, error_message: message } };
}

/** The file and all it imports, so that a client needs no second question. */
function fileAnswer(file: DescribedFile | undefined, notFound: string): Answer {
  if (file === undefined) return error(GRPC_NOT_FOUND, notFound);
  const found = new Set([file]);
  for (const { dependencies } of found) {
    for (const name of dependencies) found.add(files.get(name)!);
  }
  return { file_descriptor_response: { file_descriptor_proto: [...found].map(({ bytes }) => bytes) } };
}

function describeFile(bytes: Buffer): DescribedFile {
  const file: DescribedFile = { bytes, dependencies: [], symbols: [], messages: [], services: [] };
  let packageName = '';
  eachField(new ProtoReader(bytes), (number, reader) => {
    if (number === FILE.package) packageName = reader.string();
    else if (number === FILE.dependency) file.dependencies.push(reader.string());
    else if (number === FILE.message) describeMessage(reader, packageName, file);
    else if (number === FILE.enum) describeEnum(reader, packageName, file);
    else if (number === FILE.service) describeService(reader, packageName, file);
    else return false;
    return true;
  });
  return file;
}

function describeMessage(reader: ProtoReader, scope: string, file: DescribedFile): void {
  let name = scope;
  inside(reader, (number) => {
    if (number === MESSAGE.name) {
      name = `${scope}.${reader.string()}`;
      file.symbols.push(name);
      file.messages.push(name);
    } else if (number === MESSAGE.field || number === MESSAGE.oneof) {
      file.symbols.push(`${name}.${nameOf(reader)}`);
    } else if (number === MESSAGE.nested) describeMessage(reader, name, file);
    else if (number === MESSAGE.enum) describeEnum(reader, name, file);
    else return false;
    return true;
  });
}

/** The names of values stand beside their enum, not in it, as in C++. */
function describeEnum(reader: ProtoReader, scope: string, file: DescribedFile): void {
  inside(reader, (number) => {
    if (number === NAME) file.symbols.push(`${scope}.${reader.string()}`);
    else if (number === MEMBER) file.symbols.push(`${scope}.${nameOf(reader)}`);
    else return false;
    return true;
  });
}

function describeService(reader: ProtoReader, scope: string, file: DescribedFile): void {
  let name = scope;
  inside(reader, (number) => {
    if (number === NAME) {
      name = `${scope}.${reader.string()}`;
      file.symbols.push(name);
      file.services.push(name);
    } else if (number === MEMBER) file.symbols.push(`${name}.${nameOf(reader)}`);
    else return false;
    return true;
  });
}

function nameOf(reader: ProtoReader): string {
  let name = '';
  inside(reader, (number) => {
    if (number !== NAME) return false;
    name = reader.string();
    return true;
  });
  return name;
}

/** `visit` reads the value, or returns false to have it skipped. */
function eachField(reader: ProtoReader, visit: (number: number, reader: ProtoReader) => boolean): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (!visit(tag >>> 3, reader)) reader.skip(tag);
  }
}

function inside(reader: ProtoReader, visit: (number: number) => boolean): void {
  const outerEnd = reader.enter();
  eachField(reader, visit);
  reader.leave(outerEnd);
}
