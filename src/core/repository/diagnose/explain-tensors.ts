// Why inputs and outputs of a config do not fit the model file or the rules, and what to write instead.
// One rule per error text of validate-io-config.ts and of the backends' load checks.

import { shapeText } from '../../../domain/tensor.ts';
import { nearestName } from '../../../wire/pbtxt/nearest-name.ts';
import {
  configPath,
  dimsText,
  type Explanation,
  type ModelFacts,
  plural,
  type Rule,
  writeInConfig,
} from './explanation.ts';
import {
  blockFromFile,
  blockWith,
  configTensors,
  fileTensors,
  findFileTensor,
  kindOfTensor,
  type TensorKind,
  toConfigTensor,
} from './tensor-block.ts';

export const TENSOR_RULES: readonly Rule[] = [
  {
    pattern: /configuration expects datatype (\S+) for (input|output) '(.*)', model provides TYPE_(\S+)$/,
    explain: ([, given = '', kind = 'input', name = '', provided = ''], facts) =>
      explainDatatype(facts, {
        kind: kind as TensorKind,
        name,
        given,
        provided: provided === 'BYTES' ? 'TYPE_STRING' : `TYPE_${provided}`,
      }),
  },
  {
    pattern: /unexpected inference (input|output) '(.*)', allowed \w+ are: (.*)$/,
    explain: ([, kind = 'input', name = '', allowed = ''], facts) =>
      explainName(facts, { kind: kind as TensorKind, name, allowed: allowed.split(', ') }),
  },
  {
    pattern: /configuration expects (\d+) inputs, model provides (\d+)$/,
    explain: (match, facts) => explainCount(facts, { given: Number(match[1]), provided: Number(match[2]) }),
  },
  {
    pattern: /tensor '(.*)': the model expects \d+ dimensions \(shape (\[.*?\])\) but .*?(\[[^\]]*\])\)$/,
    explain: ([, name = '', shape = '', given = ''], facts) => explainDims(facts, { name, shape, given }),
  },
  {
    pattern: /tensor '(.*)': for the model to support batching .* by the model is (\[.*\])$/,
    explain: ([, name = '', shape = ''], facts) => explainNoBatching(facts, `'${name}' has shape ${shape}`),
  },
  {
    pattern: /autofill failed .*: model does not support batching while non-zero max_batch_size/,
    explain: (_match, facts) => explainNoBatching(facts, 'not every tensor starts with a variable dimension'),
  },
  {
    pattern: /scalar tensor '(.*)', should only provide 1 .* provided: (\[.*\])\.$/,
    explain: ([, name = '', given = ''], facts) => explainDims(facts, { name, shape: '[]', given }),
  },
  {
    pattern: /model (input|output) '(.*)' has different (?:size|number of variable-size dimensions) for dims/,
    explain: ([, kind = 'input', name = ''], facts) => explainReshape(facts, kind as TensorKind, name),
  },
  {
    pattern: /model (input|output) '(.*)' must specify '(data_type|dims)'/,
    explain: ([, kind = 'input', name = '', field = ''], facts) =>
      explainMissing(facts, { kind: kind as TensorKind, name, field }),
  },
  {
    pattern: /model (input|output) must specify 'name'/,
    explain: ([, kind = 'input'], facts) => ({
      what: `an ${kind} of the config has no name`,
      why: 'the model file is asked for its tensors by name',
      fix: fixTensors(facts, kind as TensorKind, [`give each ${kind} a line  name: "…"`]),
    }),
  },
  {
    pattern: /model (input|output) '(.*)' (?:reshape dimensions|dimension) must be integer >= 1/,
    explain: ([, kind = 'input', name = ''], facts) => ({
      what: `${kind} '${name}' has a dimension that is 0 or below -1`,
      why: 'a dimension is a size from 1 up, or -1 when the size may vary from request to request',
      fix: fixTensors(facts, kind as TensorKind, [`write sizes from 1 up, or -1, in the dims of '${name}'`]),
    }),
  },
  {
    pattern: /model (input|output) '(.*)' cannot have empty reshape for non-batching model/,
    explain: ([, kind = 'input', name = ''], facts) => ({
      what: `${kind} '${name}' is reshaped to a scalar, but the model does not batch`,
      why: 'without a batch dimension nothing would be left of the shape',
      fix: [
        `in ${configPath(facts)} take  reshape { shape: [ ] }  away from '${name}', or set max_batch_size`,
      ],
    }),
  },
  {
    pattern: /model input NHWC\/NCHW require 3 dims/,
    explain: (_match, facts) => ({
      what: 'an input with format: FORMAT_NHWC or FORMAT_NCHW does not have 3 dims',
      why: 'the format names an image: height, width and channels, without the batch dimension',
      fix: [`in ${configPath(facts)} give that input three dims, or remove its format: line`],
    }),
  },
  {
    pattern: /optional input '(.*)' is not supported for models that support batching/,
    explain: ([, name = ''], facts) => ({
      what: `input '${name}' is optional, but the model batches`,
      why: 'requests of one batch must all bring the same inputs',
      fix: [`in ${configPath(facts)} remove  optional: true  from '${name}', or write  max_batch_size: 0`],
    }),
  },
];

function isBatching(facts: ModelFacts): boolean {
  return (facts.config?.max_batch_size ?? 0) > 0;
}

/** What the file has is the surest advice; without it there are only words. */
function fixTensors(facts: ModelFacts, kind: TensorKind, words: readonly string[]): readonly string[] {
  const canTell = facts.file !== undefined && (!isBatching(facts) || facts.file.canBatch);
  return canTell ? writeInConfig(facts, blockFromFile(facts, kind, isBatching(facts))) : words;
}

function explainDatatype(
  facts: ModelFacts,
  at: { kind: TensorKind; name: string; given: string; provided: string },
): Explanation {
  const mine = configTensors(facts.config, at.kind).find((tensor) => tensor.name === at.name);
  const right = { dims: [], ...mine, name: at.name, data_type: at.provided };
  return {
    what: `${at.kind} '${at.name}' is ${at.given} in the config and ${at.provided} in the model file`,
    why: 'the bytes of a request would be read as numbers of another type',
    fix: writeInConfig(facts, blockWith(facts, at.kind, { name: at.name, right })),
  };
}

function explainName(
  facts: ModelFacts,
  at: { kind: TensorKind; name: string; allowed: readonly string[] },
): Explanation {
  const given = new Set(configTensors(facts.config, at.kind).map((tensor) => tensor.name));
  const free = at.allowed.filter((name) => !given.has(name));
  const meant = nearestName(at.name, free) ?? (free.length === 1 ? free[0] : undefined);
  const found = meant === undefined ? undefined : findFileTensor(facts, at.kind, meant);
  const why = `the file's ${at.kind}s are: ${at.allowed.join(', ')}`;
  const what = `the model file has no ${at.kind} '${at.name}'`;
  if (meant === undefined) {
    const words = [`in ${configPath(facts)} use the names above, or remove '${at.name}'`];
    return { what, why, fix: fixTensors(facts, at.kind, words) };
  }
  const mine = configTensors(facts.config, at.kind).find((tensor) => tensor.name === at.name);
  const right = found === undefined ? { data_type: '', dims: [], ...mine, name: meant } : undefined;
  const block = blockWith(facts, at.kind, {
    name: at.name,
    right: right ?? toConfigTensor(found!, isBatching(facts)),
  });
  return { what: `${what}; '${meant}' is probably meant`, why, fix: writeInConfig(facts, block) };
}

function explainCount(facts: ModelFacts, at: { given: number; provided: number }): Explanation {
  const given = configTensors(facts.config, 'input').map((tensor) => tensor.name);
  const provided = fileTensors(facts.file, 'input').map((tensor) => tensor.name);
  const lacking = provided.filter((name) => !given.includes(name));
  const extra = provided.length === 0 ? [] : given.filter((name) => !provided.includes(name));
  const parts = [
    ...(lacking.length > 0 ? [`not in the config: ${lacking.join(', ')}`] : []),
    ...(extra.length > 0 ? [`not in the file: ${extra.join(', ')}`] : []),
  ];
  const words = [`in ${configPath(facts)} list every input of the model file, or none of them`];
  return {
    what: `the config lists ${plural(at.given, 'input')}, the model file has ${at.provided}`,
    why: parts.join('; '),
    fix: fixTensors(facts, 'input', words),
  };
}

function explainDims(facts: ModelFacts, at: { name: string; shape: string; given: string }): Explanation {
  const kind = kindOfTensor(facts, at.name);
  const found = findFileTensor(facts, kind, at.name);
  const batches = isBatching(facts);
  const why = batches
    ? 'max_batch_size is above 0, so the server puts the batch dimension -1 before dims; do not write it there'
    : 'max_batch_size is 0, so dims must be the whole shape of the tensor';
  const words = [
    `in ${configPath(facts)} write the dims of '${at.name}' so that the whole shape is ${at.shape}`,
  ];
  if (found === undefined) return { what: dimsDiffer(kind, at), why, fix: words };
  const right = toConfigTensor(found, batches);
  const isBatchForgotten = !batches && facts.file?.canBatch && at.given === shapeText(found.shape.slice(1));
  return {
    what: dimsDiffer(kind, { ...at, shape: shapeText(found.shape) }),
    why,
    fix: [
      ...writeInConfig(facts, blockWith(facts, kind, { name: at.name, right })),
      ...(isBatchForgotten ? ['or, if the first dimension is the batch:  max_batch_size: 8'] : []),
    ],
  };
}

function dimsDiffer(kind: TensorKind, at: { name: string; shape: string; given: string }): string {
  return `${kind} '${at.name}' has shape ${at.given} by the config and ${at.shape} in the model file`;
}

function explainNoBatching(facts: ModelFacts, evidence: string): Explanation {
  const size = facts.config?.max_batch_size ?? 0;
  const blocks =
    facts.file === undefined || facts.config?.input.length === 0
      ? []
      : [...blockFromFile(facts, 'input', false), ...blockFromFile(facts, 'output', false)];
  return {
    what: `the config asks for batches (max_batch_size: ${size}), but the model file has a fixed batch dimension`,
    why: `${evidence}; only a first dimension of -1 can take several requests at once`,
    fix: [
      ...writeInConfig(facts, ['max_batch_size: 0', ...blocks]),
      'or export the model again with a dynamic batch dimension',
    ],
  };
}

function explainReshape(facts: ModelFacts, kind: TensorKind, name: string): Explanation {
  const tensor = configTensors(facts.config, kind).find((candidate) => candidate.name === name);
  const dims = dimsText(tensor?.dims ?? []);
  const shape = dimsText(tensor?.reshape?.shape ?? []);
  return {
    what: `${kind} '${name}' cannot be reshaped from dims ${dims} to ${shape}`,
    why: 'a reshape keeps the number of elements; a -1 in one needs a -1 in the other',
    fix: fixTensors(facts, kind, [
      `in ${configPath(facts)} remove the reshape of '${name}' or make both equal in size`,
    ]),
  };
}

function explainMissing(
  facts: ModelFacts,
  at: { kind: TensorKind; name: string; field: string },
): Explanation {
  const sample = at.field === 'dims' ? 'dims: [ 16 ]' : 'data_type: TYPE_FP32';
  return {
    what: `${at.kind} '${at.name}' has no ${at.field} in the config`,
    why: `a config that lists its ${at.kind}s must describe them fully`,
    fix: fixTensors(facts, at.kind, [
      `in ${configPath(facts)} add to '${at.name}', for example`,
      `  ${sample}`,
    ]),
  };
}
