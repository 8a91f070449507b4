// InferResponse → the JSON object of generate and of one event of generate_stream: id, model, response parameters
// and outputs side by side, sorted by name. Where two have one name, the first in that order stays, as in Triton.

import type { InferResponse, ParameterValue } from '../../domain/request.ts';
import { elementCountOf, type OutputTensor } from '../../domain/tensor.ts';
import { writeElements } from './json-elements.ts';
import { doubleText, JsonWriter, quoteJson } from './json-writer.ts';

/** Writes the value of one member. */
type MemberValue = (writer: JsonWriter) => void;

export function encodeGenerateResponse(
  response: InferResponse,
  options: { /** The request's id, when it is not valid UTF-8. */ idBytes: Buffer | undefined },
): Buffer {
  const members = membersOf(response, options.idBytes);
  const names = [...members.keys()].sort();
  const writer = new JsonWriter();
  names.forEach((name, index) => {
    writer.text(`${index === 0 ? '{' : ','}${quoteJson(name)}:`);
    members.get(name)!(writer);
  });
  writer.ascii('}');
  return writer.finish();
}

function membersOf(response: InferResponse, idBytes: Buffer | undefined): Map<string, MemberValue> {
  const members = new Map<string, MemberValue>();
  const add = (name: string, value: MemberValue): void => {
    if (!members.has(name)) members.set(name, value);
  };
  if (idBytes !== undefined) add('id', (writer) => writer.quotedBytes(idBytes));
  else if (response.id !== '') add('id', (writer) => writer.text(quoteJson(response.id)));
  add('model_name', (writer) => writer.text(quoteJson(response.modelName)));
  add('model_version', (writer) => writer.ascii(`"${response.modelVersion}"`));
  for (const [name, value] of response.parameters ?? []) {
    add(name, (writer) => writer.text(parameterText(value)));
  }
  for (const output of response.outputs) add(output.name, (writer) => writeTensor(writer, output));
  return members;
}

function parameterText(value: ParameterValue): string {
  if (typeof value === 'string') return quoteJson(value);
  return typeof value === 'number' ? doubleText(value) : String(value);
}

/** One element stands alone, any other number is a flat array. */
function writeTensor(writer: JsonWriter, output: OutputTensor): void {
  const isAlone = elementCountOf(output.shape) === 1;
  if (!isAlone) writer.ascii('[');
  writeElements(writer, output);
  if (!isAlone) writer.ascii(']');
}
