// Fills name, backend, platform and file name of a config from what it says and from what lies in its first
// version directory. Always done at load, auto-complete or not. Pure: the caller lists the directory.

import type { ModelConfig } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

export interface VersionEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

interface BackendFlavour {
  readonly backend: string;
  /** Filled when the config has none; empty when the backend has no platform. */
  readonly platform: string;
  /** Other platforms that mean the same. */
  readonly aliases?: readonly string[];
  readonly filename: string;
  /** What the file must be to be recognised in the version directory. */
  readonly holds: 'file' | 'directory' | 'either';
  /** Taken for a config that names the backend and nothing else. TensorFlow has no such flavour. */
  readonly isDefault?: boolean;
}

/** In the order in which Triton looks. */
const FLAVOURS: readonly BackendFlavour[] = [
  {
    backend: 'tensorflow',
    platform: 'tensorflow_savedmodel',
    filename: 'model.savedmodel',
    holds: 'directory',
  },
  { backend: 'tensorflow', platform: 'tensorflow_graphdef', filename: 'model.graphdef', holds: 'file' },
  { backend: 'tensorrt', platform: 'tensorrt_plan', filename: 'model.plan', holds: 'file', isDefault: true },
  {
    backend: 'onnxruntime',
    platform: 'onnxruntime_onnx',
    filename: 'model.onnx',
    holds: 'either',
    isDefault: true,
  },
  { backend: 'openvino', platform: '', filename: 'model.xml', holds: 'file', isDefault: true },
  {
    backend: 'pytorch',
    platform: 'pytorch_libtorch',
    aliases: ['libtorch'],
    filename: 'model.pt',
    holds: 'file',
    isDefault: true,
  },
  { backend: 'pytorch', platform: 'torch_aoti', filename: 'model.pt2', holds: 'file' },
  { backend: 'python', platform: '', filename: 'model.py', holds: 'file', isDefault: true },
  // Not Triton's. Of several files the first is taken: model.js may be what model.ts was compiled to.
  { backend: 'node', platform: '', filename: 'model.js', holds: 'file', isDefault: true },
  { backend: 'node', platform: '', filename: 'model.mjs', holds: 'file' },
  { backend: 'node', platform: '', filename: 'model.cjs', holds: 'file' },
  { backend: 'node', platform: '', filename: 'model.ts', holds: 'file' },
  { backend: 'llama', platform: '', filename: 'model.gguf', holds: 'file', isDefault: true },
];

export interface BackendEvidence {
  /** Name of the model's directory. */
  readonly modelName: string;
  /** Content of the first version directory; undefined when the model has none. */
  readonly versionEntries: readonly VersionEntry[] | undefined;
}

export function completeBackend(config: ModelConfig, evidence: BackendEvidence): ModelConfig {
  const named = config.name === '' ? { ...config, name: evidence.modelName } : config;
  const flavour = findFlavour(named, evidence.versionEntries ?? []);
  if (flavour !== undefined) {
    return {
      ...named,
      backend: named.backend || flavour.backend,
      platform: named.platform || flavour.platform,
      default_model_filename: named.default_model_filename || flavour.filename,
    };
  }
  const isBare = named.backend === '' && named.platform === '' && named.default_model_filename === '';
  return isBare ? completeFromName(named, evidence.modelName) : named;
}

function findFlavour(config: ModelConfig, entries: readonly VersionEntry[]): BackendFlavour | undefined {
  const candidates = FLAVOURS.filter((f) => config.backend === '' || config.backend === f.backend);
  return (
    candidates.find((flavour) => isRecognised(config, flavour, entries)) ??
    candidates.find((flavour) => flavour.isDefault && flavour.backend === config.backend)
  );
}

function isRecognised(
  config: ModelConfig,
  flavour: BackendFlavour,
  entries: readonly VersionEntry[],
): boolean {
  if (config.platform !== '') {
    return config.platform === flavour.platform || (flavour.aliases ?? []).includes(config.platform);
  }
  if (config.default_model_filename !== '') return config.default_model_filename === flavour.filename;
  const entry = entries.find((e) => e.name === flavour.filename);
  if (entry === undefined) return false;
  return flavour.holds === 'either' || (flavour.holds === 'directory') === entry.isDirectory;
}

/** `mymodel.identity` without any other hint is a model of the backend `identity`. */
function completeFromName(config: ModelConfig, modelName: string): ModelConfig {
  const dot = modelName.indexOf('.');
  if (dot === -1) {
    throw invalidArgument(
      `Invalid model name: Could not determine backend for model '${modelName}' with no backend in model configuration. ` +
        "Expected model name of the form 'model.<backend_name>'.",
    );
  }
  const backend = modelName.slice(dot + 1);
  return { ...config, backend, default_model_filename: `model.${backend}` };
}
