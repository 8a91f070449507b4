// Problems with what lies in a model's directory: versions, the model file, labels, names, and backends that
// follow from them. Fixes are commands that can be pasted.

import { nearestName } from '../../../wire/pbtxt/nearest-name.ts';
import { explainBackend } from './explain-backend.ts';
import {
  configPath,
  type Explanation,
  type ModelFacts,
  type Rule,
  shellPath,
  writeInConfig,
} from './explanation.ts';

/** Files and directories that the backends of Triton load. */
const MODEL_FILE = /\.(?:onnx|pt2?|plan|xml|py|gguf|graphdef|savedmodel|txt|json|ubj)$/;
const DEFAULT_FILE_NAMES = /^model\.(?:onnx|pt2?|plan|xml|py|graphdef|savedmodel)$/;

export const FILE_RULES: readonly Rule[] = [
  {
    pattern: /at least one version must be available under the version policy/,
    explain: (_match, facts) => explainNoVersion(facts),
  },
  {
    pattern: /Could not determine backend for model/,
    explain: (_match, facts) => explainNoBackend(facts),
  },
  {
    pattern: /unexpected directory name '(.*)' for model '(.*)', directory name must equal/,
    explain: ([, directory = '', name = ''], facts) => ({
      what: `the directory is called '${directory}', the config says name: "${name}"`,
      why: 'clients ask for a model by its name, and the server finds it by its directory',
      fix: [
        ...writeInConfig(facts, [`name: "${directory}"`]),
        `or remove the name: line, or rename the directory:`,
        `  mv ${shellPath(facts.path)} ${shellPath(siblingOf(facts.path, name))}`,
      ],
    }),
  },
  { pattern: /failed to stat file (.*)$/, explain: ([, path = ''], facts) => explainNoFile(facts, path) },
  {
    pattern: /failed to open text file for read (.*): (.*)$/,
    explain: ([, path = '', reason = ''], facts) => explainLabelFile(facts, path, reason),
  },
  {
    pattern: /unable to find backend library for backend '(.*)'/,
    explain: ([, backend = ''], facts) => explainBackend(backend, facts),
  },
  {
    pattern: /unexpected platform type '(.*)' for/,
    explain: ([, platform = ''], facts) => ({
      what: platform === '' ? 'the config names no backend' : `platform "${platform}" is not known`,
      why: `the version directory holds no file that tells the backend either${listOf(facts.versionEntries)}`,
      fix: writeInConfig(facts, [`backend: "${facts.backends[0] ?? 'onnxruntime'}"`]),
    }),
  },
  {
    pattern: /unexpected 'platform' and 'backend' pair, got:(.*), (.*)$/,
    explain: ([, platform = '', backend = ''], facts) => ({
      what: `platform "${platform}" does not belong to backend "${backend}"`,
      why: 'the backend alone is enough; platform is the older way to say the same',
      fix: [`in ${configPath(facts)} remove the platform: line`],
    }),
  },
  {
    pattern: /Load model from (.*) failed:\s*(?:Protobuf parsing failed|.*ModelProto does not have a graph)/,
    explain: ([, path = ''], facts) =>
      facts.isLfsPointer
        ? explainLfs(facts)
        : explainBadFile(path, 'it is damaged, cut short, or no ONNX file'),
  },
  {
    pattern: /Unsupported model IR version: (\d+), max supported IR version: (\d+)/,
    explain: ([, given, max]) => explainTooNew(`IR version ${given}, the runtime reads up to ${max}`),
  },
  {
    pattern: /current official support for domain (\S+) is till opset (\d+)/,
    explain: ([, domain, max]) => explainTooNew(`the runtime knows opset ${max} of ${domain} at most`),
  },
  {
    pattern: /(?:External data|external initializer|external data)/,
    explain: (_match, facts) => ({
      what: 'the model file keeps its weights in a second file, and that one is missing',
      why: `the weights must lie beside the model file${listOf(facts.versionEntries)}`,
      fix: [
        'copy the external data file to the version directory, under the name the exporter gave it:',
        `  cp <file>.data ${shellPath(facts.path, facts.version ?? 1)}/`,
      ],
    }),
  },
  {
    pattern: /(\S+) is not a registered function\/op/,
    explain: ([, operator = ''], facts) => ({
      what: `the model uses the operator ${operator}, which ONNX Runtime does not have`,
      why: 'it comes from a library of custom operators, or from a newer ONNX',
      fix: [
        'export the model without it, or name the library that has it:',
        ...writeInConfig(facts, ['model_operations { op_library_filename: [ "<library>.so" ] }']),
      ],
    }),
  },
];

function explainNoVersion(facts: ModelFacts): Explanation {
  const { path, versions, ignored, config } = facts;
  if (versions.length > 0) {
    const wanted = config?.version_policy?.specific?.versions ?? [];
    return {
      what: `version_policy asks for version ${wanted.join(', ')}, the directory has ${versions.join(', ')}`,
      why: 'no version is left to serve',
      fix: writeInConfig(facts, [`version_policy { specific { versions: [ ${versions.join(', ')} ] } }`]),
    };
  }
  const what = 'there is no version directory';
  const why = 'a model file lies in a directory whose name is a number: 1, 2, 3 …';
  const [odd] = ignored;
  if (odd !== undefined) {
    const number = Number.parseInt(/\d+/.exec(odd)?.[0] ?? '1', 10);
    const rename = `mv ${shellPath(path, odd)} ${shellPath(path, number)}`;
    return { what: `${what}; '${odd}' is not a number`, why, fix: ['rename it:', `  ${rename}`] };
  }
  const loose = facts.modelEntries.filter((name) => DEFAULT_FILE_NAMES.test(name) || name.endsWith('.onnx'));
  const target = shellPath(path, 1);
  if (loose.length === 0) {
    const name = config?.default_model_filename || 'model.onnx';
    return {
      what,
      why,
      fix: ['make one and put the model file there:', `  mkdir ${target} && cp <file> ${target}/${name}`],
    };
  }
  const [file = ''] = loose;
  const name = loose.length === 1 && file.endsWith('.onnx') ? 'model.onnx' : '';
  const files = loose.map((entry) => shellPath(path, entry)).join(' ');
  return {
    what,
    why,
    fix: [`move ${loose.join(', ')} into one:`, `  mkdir ${target} && mv ${files} ${target}/${name}`],
  };
}

function explainNoBackend(facts: ModelFacts): Explanation {
  const { versions, versionEntries, path } = facts;
  const hasConfig = facts.modelEntries.includes('config.pbtxt');
  if (
    versions.length === 0 &&
    (facts.modelEntries.some((name) => MODEL_FILE.test(name)) || facts.ignored.length > 0)
  ) {
    return explainNoVersion(facts);
  }
  if (versions.length === 0 && !hasConfig) {
    return {
      what: 'this directory is no model: it has neither config.pbtxt nor a version directory',
      why: 'every directory of a repository is taken for a model',
      fix: [`if it is none, move it out of the repository; else add ${shellPath(path, 1)}/model.onnx`],
    };
  }
  const odd = versionEntries.find((name) => MODEL_FILE.test(name));
  const directory = shellPath(path, facts.version ?? 1);
  if (odd === undefined) {
    return {
      what: 'nothing tells which backend runs this model',
      why: `no model file is recognised in version ${facts.version ?? 1}${listOf(versionEntries)}`,
      fix: [`put the model file there: ${directory}/model.onnx`],
    };
  }
  const extension = odd.slice(odd.lastIndexOf('.'));
  return {
    what: `the model file is called ${odd}, and the config names no backend`,
    why: `without a backend: line only the default names are recognised, here model${extension}`,
    fix: [
      'rename the file:',
      `  mv ${shellPath(path, facts.version ?? 1, odd)} ${directory}/model${extension}`,
      'or keep its name:',
      ...writeInConfig(facts, [
        `backend: "${extension === '.onnx' ? 'onnxruntime' : '<backend>'}"`,
        `default_model_filename: "${odd}"`,
      ]),
    ],
  };
}

function explainNoFile(facts: ModelFacts, path: string): Explanation {
  const wanted = path.slice(path.lastIndexOf('/') + 1);
  const extension = wanted.slice(wanted.lastIndexOf('.'));
  const candidates = facts.versionEntries.filter((name) => name.endsWith(extension));
  const found = nearestName(wanted, candidates) ?? candidates[0];
  const what = `the model file ${facts.version}/${wanted} is not there`;
  const why =
    facts.versionEntries.length === 0
      ? `version ${facts.version} is an empty directory`
      : `version ${facts.version} holds ${facts.versionEntries.slice(0, 5).join(', ')}`;
  if (found === undefined)
    return { what, why, fix: ['put the model file there:', `  cp <file> ${shellPath(path)}`] };
  return {
    what,
    why,
    fix: [
      `rename ${found}:`,
      `  mv ${shellPath(facts.path, facts.version ?? 1, found)} ${shellPath(path)}`,
      'or keep its name:',
      ...writeInConfig(facts, [`default_model_filename: "${found}"`]),
    ],
  };
}

function explainLabelFile(facts: ModelFacts, path: string, reason: string): Explanation {
  const output = facts.config?.output.find((o) => o.label_filename !== '' && path.endsWith(o.label_filename));
  const found = facts.modelEntries.find((name) => name.endsWith('.txt'));
  const edit =
    found === undefined
      ? []
      : ['or name the file that is there:', ...writeInConfig(facts, [`label_filename: "${found}"`])];
  return {
    what: `the label file ${output?.label_filename ?? path} cannot be read (${reason.toLowerCase()})`,
    why: `${output === undefined ? '' : `output '${output.name}' names it; `}it lies in the model's directory, beside config.pbtxt`,
    fix: [
      `write ${shellPath(path)} with one label per line,`,
      'or remove label_filename from the config',
      ...edit,
    ],
  };
}

function explainLfs(facts: ModelFacts): Explanation {
  return {
    what: 'the model file is a Git LFS pointer, not the model',
    why: 'the repository was cloned without its large files',
    fix: ['fetch them:', `  git -C ${shellPath(facts.path)} lfs pull`],
  };
}

function explainBadFile(path: string, why: string): Explanation {
  return {
    what: 'the model file cannot be read',
    why,
    fix: [
      'export or copy it again, and check it with:',
      `  python -c "import onnx; onnx.checker.check_model('${path}')"`,
    ],
  };
}

function explainTooNew(why: string): Explanation {
  return {
    what: 'the model file was written for a newer ONNX than this runtime reads',
    why,
    fix: [
      'export it again with an older opset, for example torch.onnx.export(…, opset_version=17),',
      'or serve with a newer library: --backend-config=onnxruntime,library-path=<file>',
    ],
  };
}

function siblingOf(path: string, name: string): string {
  return `${path.slice(0, path.lastIndexOf('/') + 1)}${name}`;
}

function listOf(names: readonly string[]): string {
  return names.length === 0
    ? ''
    : ` (it holds ${names.slice(0, 5).join(', ')}${names.length > 5 ? ' …' : ''})`;
}
