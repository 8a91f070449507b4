// Problems with the settings of a config: batching, schedulers, instance groups, warm-up. One rule per error text
// of validate-config.ts and its neighbours.

import { configPath, type Explanation, type ModelFacts, type Rule, writeInConfig } from './explanation.ts';

export const SETTING_RULES: readonly Rule[] = [
  {
    pattern: /'max_batch_size' must be non-negative/,
    explain: (_match, facts) => ({
      what: `max_batch_size is ${facts.config?.max_batch_size ?? 'negative'}`,
      why: 'it is the largest batch the model takes; 0 means that the model has no batch dimension',
      fix: [
        ...writeInConfig(facts, ['max_batch_size: 8']),
        'or  max_batch_size: 0  if the first dimension of the model is no batch',
      ],
    }),
  },
  {
    pattern: /dynamic batching preferred size must be (?:<= max batch size|positive)/,
    explain: (_match, facts) => explainPreferred(facts),
  },
  {
    pattern: /default priority level must be in range \[1, (\d+)\]/,
    explain: ([, levels], facts) => ({
      what: `default_priority_level is ${facts.config?.dynamic_batching?.default_priority_level}, with ${levels} priority_levels`,
      why: 'requests that name no priority get the default one, so it must exist; 1 is the most urgent',
      fix: [`in ${configPath(facts)}, inside dynamic_batching, write`, `  default_priority_level: ${levels}`],
    }),
  },
  {
    pattern: /priority queue policy must have priority level in range \[1, (\d+)\]/,
    explain: ([, levels], facts) => ({
      what: `priority_queue_policy names a level outside 1 to ${levels}`,
      why: 'a policy belongs to one of the priority_levels',
      fix: [
        `in ${configPath(facts)} use keys from 1 to ${levels} in priority_queue_policy, or raise priority_levels`,
      ],
    }),
  },
  {
    pattern: /when 'preserve_ordering' is true/,
    explain: (_match, facts) => ({
      what: 'preserve_ordering excludes several priority levels and the timeout action DELAY',
      why: 'answers in order of arrival leave no room to put a request before or behind another',
      fix: [`in ${configPath(facts)}, inside dynamic_batching, remove preserve_ordering or the priorities`],
    }),
  },
  {
    pattern: /has kind KIND_GPU but no GPUs are available/,
    explain: (_match, facts) => ({
      what: 'the model asks for a GPU, and this machine has none',
      why: 'no /dev/nvidia0 was found; in a container the GPU must be passed in (--gpus all)',
      fix: [
        'check on the machine that will serve, or run on the CPU:',
        ...writeInConfig(facts, ['instance_group [ { kind: KIND_CPU } ]']),
      ],
    }),
  },
  {
    pattern: /specifies invalid or unsupported gpu id (\d+)/,
    explain: ([, id], facts) => ({
      what: `GPU ${id} does not exist on this machine`,
      why: `the GPUs here are: ${facts.gpuIds.join(', ')}`,
      fix: writeInConfig(facts, [
        `instance_group [ { kind: KIND_GPU gpus: [ ${facts.gpuIds.join(', ')} ] } ]`,
      ]),
    }),
  },
  {
    pattern: /has kind (KIND_CPU|KIND_MODEL) but specifies one or more GPUs/,
    explain: ([, kind], facts) => ({
      what: `an instance group is ${kind} and lists gpus`,
      why: 'only groups of kind KIND_GPU are placed on GPUs',
      fix: [`in ${configPath(facts)} remove  gpus: [ … ]  from the group, or make it kind: KIND_GPU`],
    }),
  },
  {
    pattern: /specifies profile field which is only supported for TensorRT/,
    explain: (_match, facts) => ({
      what: 'an instance group names a profile',
      why: 'profiles belong to TensorRT plans',
      fix: [`in ${configPath(facts)} remove  profile: [ … ]`],
    }),
  },
  {
    pattern: /(\w+ExecutionProvider) is requested, but ONNX Runtime (\S+)/,
    explain: ([, provider, version], facts) => ({
      what: `the config needs ${provider}, which this build of ONNX Runtime ${version} does not have`,
      why: 'the bundled library runs on the CPU; GPU builds are separate downloads',
      fix: [
        'serve with  --backend-config=onnxruntime,library-path=<a build that has it>',
        'or run on the CPU:',
        ...writeInConfig(facts, ['instance_group [ { kind: KIND_CPU } ]']),
      ],
    }),
  },
  {
    pattern: /unknown Execution Accelerator '(.*)' is requested/,
    explain: ([, name], facts) => ({
      what: `there is no execution accelerator '${name}'`,
      why: 'on a GPU there are tensorrt and cuda, on a CPU openvino',
      fix: [`in ${configPath(facts)} correct its name, or remove execution_accelerators`],
    }),
  },
  {
    pattern: /[Ee]nsemble/,
    explain: (_match, facts) => ({
      what: 'the steps of the ensemble do not fit together',
      why: 'every tensor must be written once, by the inputs or by one step, and then be used',
      fix: [`in ${configPath(facts)} correct ensemble_scheduling as the error says`],
    }),
  },
  {
    pattern: /warmup setting expects all variable-size dimensions are specified for input '(.*)'/,
    explain: ([, input], facts) => ({
      what: `the warm-up sample leaves the size of input '${input}' open`,
      why: 'a warm-up is a real request, so every dimension needs a size',
      fix: [
        `in ${configPath(facts)}, inside model_warmup, write sizes in place of -1 in the dims of '${input}'`,
      ],
    }),
  },
  {
    pattern: /unexpected inference input '(.*)' for model .* in warmup/,
    explain: ([, input], facts) => ({
      what: `the warm-up names input '${input}', which the model does not have`,
      why: `its inputs are: ${facts.config?.input.map((tensor) => tensor.name).join(', ')}`,
      fix: [`in ${configPath(facts)} correct the key in model_warmup`],
    }),
  },
  {
    pattern: /[Ww]armup|warmup sample/,
    explain: (_match, facts) => ({
      what: 'a warm-up request fails',
      why: 'every instance runs the samples of model_warmup before it is ready',
      fix: [`in ${configPath(facts)} correct the sample in model_warmup, or remove it`],
    }),
  },
  {
    pattern: /Response Cache does not currently support/,
    explain: (_match, facts) => ({
      what: 'response_cache does not go with this kind of model',
      why: 'a cached answer needs one request with one answer, and no state',
      fix: [`in ${configPath(facts)} remove  response_cache { enable: true }`],
    }),
  },
  {
    pattern: /host process (?:exited|was ended|did not)/,
    explain: () => ({
      what: 'the model brought its process down while it was loading',
      why: 'the model file, its custom operators or the lack of memory ended it; no other model is harmed',
      fix: ['look at what it printed, above; check the memory that is free'],
    }),
  },
];

function explainPreferred(facts: ModelFacts): Explanation {
  const max = facts.config?.max_batch_size ?? 0;
  const sizes = facts.config?.dynamic_batching?.preferred_batch_size ?? [];
  const good = sizes.filter((size) => size >= 1 && size <= max);
  const largest = Math.max(...sizes, 1);
  if (max === 0) {
    return {
      what: 'dynamic_batching prefers batches, but max_batch_size is 0',
      why: 'a model with max_batch_size 0 takes one request at a time',
      fix: [...writeInConfig(facts, [`max_batch_size: ${largest}`]), 'or remove dynamic_batching'],
    };
  }
  const list = good.length > 0 ? good.join(', ') : String(max);
  return {
    what: `preferred_batch_size [ ${sizes.join(', ')} ] does not fit max_batch_size ${max}`,
    why: 'a batch is never larger than max_batch_size, and never empty',
    fix: [
      `in ${configPath(facts)}, inside dynamic_batching, write`,
      `  preferred_batch_size: [ ${list} ]`,
      ...(largest > max ? [`or raise it:  max_batch_size: ${largest}`] : []),
    ],
  };
}
