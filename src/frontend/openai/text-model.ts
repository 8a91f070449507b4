// A served model as the OpenAI API sees it: one that has an input `text_input` and an output `text_output`, perhaps with an
// adapter in its name. What it declares decides what it is sent; nothing here knows a backend.

import { createHash } from 'node:crypto';
import type { ServedModel } from '../../core/model/served-model.ts';
import { type Catalog, LATEST_VERSION } from '../../core/repository/catalog.ts';
import type { TensorSpec } from '../../domain/model-view.ts';
import { StatusError } from '../../domain/status.ts';
import { readVersion } from '../../lib/version.ts';
import { findLabelled } from '../version-label.ts';
import { invalidField, modelNotFound } from './api-error.ts';

export interface TextModel {
  readonly served: ServedModel;
  readonly target: { readonly model: string; readonly version: number };
  /** The name behind the colon; undefined when there is none. */
  readonly adapter: string | undefined;
  /** Takes the messages themselves, several choices, and every setting the API has. */
  readonly isChatModel: boolean;
  readonly inputs: ReadonlyMap<string, TensorSpec>;
  hasOutput(name: string): boolean;
}

export const TEXT_INPUT = 'text_input';
export const TEXT_OUTPUT = 'text_output';
export const ADAPTER_SEPARATOR = ':';
/** The header that asks for a version, a number or a label; without it the newest serves. */
export const VERSION_HEADER = 'nereid-model-version';

/** `name` as the request has it. Throws an ApiError that names the field `model`. */
export function findTextModel(catalog: Catalog, name: string, version: string | undefined): TextModel {
  const { model, adapter } = splitName(catalog, name);
  let target = { model, version: LATEST_VERSION };
  let served: ServedModel;
  try {
    if (version !== undefined && version !== '')
      target = { model, version: parseVersion(catalog, model, version) };
    served = catalog.find(model, target.version);
  } catch (thrown) {
    if (thrown instanceof StatusError && thrown.code === 'NOT_FOUND') throw modelNotFound(name);
    throw thrown;
  }
  if (!isTextModel(served)) {
    throw invalidField(
      'model',
      `The model '${name}' is no text model: it has no input '${TEXT_INPUT}' and output '${TEXT_OUTPUT}'.`,
    );
  }
  if (adapter !== undefined && !adaptersOf(served).includes(adapter)) throw modelNotFound(name);
  const inputs = new Map(served.inputs.map((input) => [input.name, input]));
  return {
    served,
    target,
    adapter,
    isChatModel: inputs.has('chat_request'),
    inputs,
    hasOutput: (output) => served.outputs.some((spec) => spec.name === output),
  };
}

/** A model may have a colon in its own name; only when there is none of that name it separates an adapter. */
function splitName(catalog: Catalog, name: string): { model: string; adapter: string | undefined } {
  const at = name.lastIndexOf(ADAPTER_SEPARATOR);
  if (at <= 0 || catalog.has(name)) return { model: name, adapter: undefined };
  return { model: name.slice(0, at), adapter: name.slice(at + 1) };
}

function parseVersion(catalog: Catalog, model: string, version: string): number {
  const labelled = findLabelled(catalog, { model, version });
  if (labelled !== undefined) return labelled;
  if (/^[0-9]{1,15}$/.test(version)) return Number(version);
  throw invalidField('model', `The header ${VERSION_HEADER} is neither a version nor a label: '${version}'.`);
}

export function isTextModel(model: ServedModel): boolean {
  return (
    model.inputs.some(({ name, datatype }) => name === TEXT_INPUT && datatype === 'BYTES') &&
    model.outputs.some(({ name, datatype }) => name === TEXT_OUTPUT && datatype === 'BYTES')
  );
}

/** The names in the parameter `lora_adapters`; a value that is no JSON object has been refused by the backend. */
export function adaptersOf(model: ServedModel): readonly string[] {
  const text = model.config.parameters.lora_adapters?.string_value;
  if (text === undefined) return [];
  try {
    const adapters: unknown = JSON.parse(text);
    return typeof adapters === 'object' && adapters !== null ? Object.keys(adapters) : [];
  } catch {
    return [];
  }
}

const fingerprints = new WeakMap<ServedModel, string>();

/** Changes when the same seed may give another text: with the server, the version of the model, or its config. */
export function fingerprintOf(model: ServedModel): string {
  let fingerprint = fingerprints.get(model);
  if (fingerprint === undefined) {
    const hash = createHash('sha256').update(
      `${readVersion()} ${model.version} ${JSON.stringify(model.config)}`,
    );
    fingerprint = `fp_${hash.digest('hex').slice(0, 10)}`;
    fingerprints.set(model, fingerprint);
  }
  return fingerprint;
}
