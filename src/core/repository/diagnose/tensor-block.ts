// The `input [ … ]` and `output [ … ]` blocks that a fix tells the user to write: the config's own tensors, with
// the wrong ones replaced by what the model file has. Pure.

import type { ModelConfig } from '../../../domain/model-config.ts';
import { quoteLiteral } from '../../../wire/pbtxt/string-literal.ts';
import { dimsText, type FileSignature, type FileTensor, type ModelFacts } from './explanation.ts';

export type TensorKind = 'input' | 'output';

/** The fields of ModelInput and ModelOutput that people write. */
export interface ConfigTensor {
  readonly name: string;
  readonly data_type: string;
  readonly dims: readonly number[];
  readonly reshape?: { shape: readonly number[] };
  readonly format?: string;
  readonly label_filename?: string;
}

export function configTensors(config: ModelConfig | undefined, kind: TensorKind): readonly ConfigTensor[] {
  return config?.[kind] ?? [];
}

export function fileTensors(file: FileSignature | undefined, kind: TensorKind): readonly FileTensor[] {
  return (kind === 'input' ? file?.inputs : file?.outputs) ?? [];
}

export function findFileTensor(facts: ModelFacts, kind: TensorKind, name: string): FileTensor | undefined {
  return fileTensors(facts.file, kind).find((tensor) => tensor.name === name);
}

/** Inputs and outputs share names rarely; the input is meant when they do. */
export function kindOfTensor(facts: ModelFacts, name: string): TensorKind {
  return configTensors(facts.config, 'input').some((tensor) => tensor.name === name) ? 'input' : 'output';
}

export function toConfigTensor(tensor: FileTensor, isBatching: boolean): ConfigTensor {
  const { name, data_type } = tensor;
  const dims = isBatching ? tensor.shape.slice(1) : tensor.shape;
  if (dims.length > 0) return { name, data_type, dims };
  return isBatching ? { name, data_type, dims: [1], reshape: { shape: [] } } : { name, data_type, dims: [1] };
}

/** The whole block with the tensor `name` replaced; what the config says of labels and format stays. */
export function blockWith(
  facts: ModelFacts,
  kind: TensorKind,
  at: { name: string; right: ConfigTensor },
): string[] {
  const tensors = configTensors(facts.config, kind).map((tensor) =>
    tensor.name === at.name ? keepExtras(at.right, tensor) : tensor,
  );
  return blockOf(kind, tensors.length === 0 ? [at.right] : tensors);
}

/** The block as the file has it; what the config says of a tensor of the same name stays. */
export function blockFromFile(facts: ModelFacts, kind: TensorKind, isBatching: boolean): string[] {
  const given = new Map(configTensors(facts.config, kind).map((tensor) => [tensor.name, tensor]));
  const tensors = fileTensors(facts.file, kind).map((tensor) => {
    const right = toConfigTensor(tensor, isBatching);
    const mine = given.get(tensor.name);
    return mine === undefined ? right : keepExtras(right, mine);
  });
  return blockOf(kind, tensors);
}

export function blockOf(kind: TensorKind, tensors: readonly ConfigTensor[]): string[] {
  const texts = tensors.map(tensorText);
  if (texts.length <= 1) return [`${kind} [ ${texts.join('')} ]`];
  return [`${kind} [`, ...texts.map((text, i) => `  ${text}${i < texts.length - 1 ? ',' : ''}`), ']'];
}

function keepExtras(right: ConfigTensor, given: ConfigTensor): ConfigTensor {
  const hasFormat = given.format !== undefined && given.format !== 'FORMAT_NONE' && right.dims.length === 3;
  return {
    ...right,
    ...(hasFormat ? { format: given.format } : {}),
    ...(given.label_filename ? { label_filename: given.label_filename } : {}),
  };
}

function tensorText(tensor: ConfigTensor): string {
  const { format, label_filename: labels } = tensor;
  const parts = [`name: ${quoteLiteral(tensor.name)}`, `data_type: ${tensor.data_type}`];
  if (format !== undefined && format !== 'FORMAT_NONE') parts.push(`format: ${format}`);
  parts.push(`dims: ${dimsText(tensor.dims)}`);
  if (tensor.reshape !== undefined) parts.push(`reshape { shape: ${dimsText(tensor.reshape.shape)} }`);
  if (labels) parts.push(`label_filename: ${quoteLiteral(labels)}`);
  return `{ ${parts.join(' ')} }`;
}
