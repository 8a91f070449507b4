// What does not keep a model from serving and is hardly meant: ignored directories, batching that cannot happen,
// label files that are too short. Pure.

import type { ModelConfig, ModelOutput } from '../../../domain/model-config.ts';
import { elementCountOf } from '../../../domain/tensor.ts';
import { type Explanation, type ModelFacts, plural, shellPath, writeInConfig } from './explanation.ts';

/** Of a model whatever became of it. */
export function directoryWarnings(facts: ModelFacts, missing: readonly number[]): Explanation[] {
  // Without any version the odd names are the problem itself, and told there.
  const ignored = facts.versions.length === 0 ? [] : facts.ignored;
  return [
    ...ignored.map((name) => ignoredDirectory(facts, name)),
    ...missing.map((version) => ({
      what: `version_policy asks for version ${version}, which is not there`,
      why: 'the other versions are served',
      fix: [`add ${shellPath(facts.path, version)}, or take ${version} out of version_policy`],
    })),
  ];
}

/** Of a model that loads. */
export function servedWarnings(
  config: ModelConfig,
  labels: ReadonlyMap<string, readonly string[]>,
  facts: ModelFacts,
): Explanation[] {
  return [
    ...batchWarnings(config, facts),
    ...config.output.flatMap((output) => labelWarnings(output, labels, facts)),
  ];
}

function ignoredDirectory(facts: ModelFacts, name: string): Explanation {
  const digits = /\d+/.exec(name)?.[0];
  const number = digits === undefined ? undefined : Number.parseInt(digits, 10);
  const isFree = number !== undefined && !facts.versions.includes(number);
  const free = Math.max(0, ...facts.versions) + 1;
  return {
    what: `directory '${name}' is ignored`,
    why: 'a version directory is a plain number without leading zeros',
    fix: [
      'if it is a version, rename it:',
      `  mv ${shellPath(facts.path, name)} ${shellPath(facts.path, isFree ? number : free)}`,
    ],
  };
}

function batchWarnings(config: ModelConfig, facts: ModelFacts): Explanation[] {
  const { max_batch_size: max, dynamic_batching: dynamic } = config;
  if (dynamic !== undefined && max <= 1) {
    return [
      {
        what: `dynamic_batching has no effect with max_batch_size ${max}`,
        why: 'there is never more than one request in a batch',
        fix: ['raise max_batch_size, or remove dynamic_batching'],
      },
    ];
  }
  const tensors = [...config.input, ...config.output];
  const canBatch =
    tensors.length > 0 && tensors.every((tensor) => tensor.dims[0] === -1 && tensor.dims.length > 1);
  if (max > 0 || !canBatch) return [];
  return [
    {
      what: 'the model could batch, but max_batch_size is 0',
      why: 'every tensor starts with a variable dimension; if that is the batch, requests could share a run',
      fix: [
        ...writeInConfig(facts, ['max_batch_size: 8', 'dynamic_batching { }']),
        'and take the leading -1 out of all dims',
      ],
    },
  ];
}

function labelWarnings(
  output: ModelOutput,
  labels: ReadonlyMap<string, readonly string[]>,
  facts: ModelFacts,
): Explanation[] {
  const lines = labels.get(output.name);
  if (lines === undefined || output.dims.some((dim) => dim < 1)) return [];
  const classCount = elementCountOf(output.dims);
  if (lines.length >= classCount) return [];
  return [
    {
      what: `${output.label_filename} has ${plural(lines.length, 'label')} for ${plural(classCount, 'class')}`.replace(
        'classs',
        'classes',
      ),
      why: `output '${output.name}' has ${classCount} values; the last ones are returned without a label`,
      fix: [
        `add the missing lines to ${shellPath(facts.path, output.label_filename)}, one label per class, in order`,
      ],
    },
  ];
}
