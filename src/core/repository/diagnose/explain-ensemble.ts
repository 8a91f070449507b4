// Errors of ensembles that only show when the models of the steps are known, and what to do about them. Read by
// diagnose.ts before the other tables, since such an error may quote another model's.

import { configPath, type ModelFacts, type Rule } from './explanation.ts';

const inSteps = (facts: ModelFacts) => `in ${configPath(facts)}, inside ensemble_scheduling,`;

export const ENSEMBLE_RULES: readonly Rule[] = [
  {
    pattern: /contains models that are not available or ambiguous: (.*)/,
    explain: ([, names], facts) => ({
      what: `the ensemble needs ${names}, which is not in the repository`,
      why: 'each step names a model directory beside this one',
      fix: [`add the missing model, or ${inSteps(facts)} correct model_name`],
    }),
  },
  {
    pattern: /^ensemble '.*' depends on '(.*)' whose required version (\d+) is not loaded/,
    explain: ([, name, version], facts) => ({
      what: `the ensemble needs version ${version} of '${name}', which is not served`,
      why: `the version_policy of '${name}' says which of its versions are`,
      fix: [`${inSteps(facts)} write  model_version: -1  for the newest, or serve version ${version}`],
    }),
  },
  {
    pattern: /^ensemble '.*' depends on '(.*?)' which (?:is not valid|has no loaded version)/,
    explain: ([, name]) => ({
      what: `the ensemble needs '${name}', which does not load`,
      why: 'an ensemble is served when all of its models are',
      fix: [`correct '${name}' first`],
    }),
  },
  {
    pattern: /circular dependency between ensembles: (.*)/,
    explain: ([, circle], facts) => ({
      what: 'the ensemble needs itself',
      why: circle!,
      fix: [`${inSteps(facts)} take the step out that leads back`],
    }),
  },
  {
    pattern: /allows maximum batch size (\d+), but it contains model (.*) which only allows .* to be (\d+)/,
    explain: ([, own, name, other], facts) => ({
      what: `the ensemble takes batches of ${own}, its model '${name}' only of ${other}`,
      why: 'a batch goes through all steps as it came',
      fix: [
        `in ${configPath(facts)} write  max_batch_size: ${other}`,
        `or raise max_batch_size of '${name}'`,
      ],
    }),
  },
  {
    pattern:
      /ensemble tensor (.*): inconsistent (data type|shape): (.*) is inferred from model (.*) while (.*) is inferred from model (.*)/,
    explain: ([, tensor, what, first, from, second, other], facts) => ({
      what: `tensor '${tensor}' has two ${what === 'shape' ? 'shapes' : 'data types'}`,
      why: `'${from}' says ${first}, '${other}' says ${second}`,
      fix: [`${inSteps(facts)} map tensors that fit, or correct the one that is wrong`],
    }),
  },
  {
    pattern: /ensemble tensor .* is mapp(?:ing to|ed from) non-existing (input|output) (.*) in model (.*)/,
    explain: ([, kind, name, model], facts) => ({
      what: `'${model}' has no ${kind} '${name}'`,
      why: `the key of ${kind}_map is a name of the model, the value a name of the ensemble`,
      fix: [`${inSteps(facts)} correct the key '${name}'`],
    }),
  },
  {
    pattern: /input (.*) in model (.*) is not mapped to any ensemble tensors/,
    explain: ([, input, model], facts) => ({
      what: `input '${input}' of '${model}' gets no tensor`,
      why: 'it is not optional',
      fix: [`${inSteps(facts)} add  input_map { key: "${input}" value: "…" }`],
    }),
  },
  {
    pattern: /step of model '(.*)' receives inputs originated from different decoupled models/,
    explain: ([, model]) => ({
      what: `the step of '${model}' takes tensors of two decoupled models`,
      why: 'it is not known which of their responses belong together',
      fix: ['let both go through one model, or make one of them not decoupled'],
    }),
  },
];
