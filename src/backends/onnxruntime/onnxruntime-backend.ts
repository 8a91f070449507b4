// The `onnxruntime` backend: opens the model with ONNX Runtime's C API, completes its config from the graph and
// makes the instance that runs it. The session that completion needed is the one that the instance uses.

import { readInitialStates } from '../../backend/initial-states.ts';
import type { Backend, BackendInstance, BackendModel, LoadContext } from '../../backend/sdk.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { autoCompleteConfig } from './auto-complete.ts';
import { validateConfigAgainstSession } from './load-checks.ts';
import { OnnxInstance } from './onnx-instance.ts';
import { type OrtLibrary, openOrtLibrary } from './ort-library.ts';
import { openSession } from './session.ts';
import { readSessionSignature, type SessionSignature } from './session-signature.ts';

export const onnxruntimeBackend: Backend = {
  name: 'onnxruntime',
  load: loadModel,
};

async function loadModel(context: LoadContext): Promise<BackendModel> {
  const library = openOrtLibrary(context.backendConfig['library-path']);
  context.log('verbose', `ONNX Runtime ${library.version} at ${library.path}`);
  if (!library.canCallAsync) {
    context.log('warning', 'stacks of native threads are too small: runs are made on the event loop');
  }
  const session = await openSession(library, context);
  try {
    const signature = readSessionSignature(library, session);
    const { modelName, modelDirectory, config, backendConfig } = context;
    const completed = context.isAutoComplete
      ? autoCompleteConfig({ modelName, config, signature, backendConfig })
      : config;
    return {
      config: completed,
      start: async (started) =>
        startInstance({ library, session, signature, modelName, modelDirectory }, started),
    };
  } catch (error) {
    library.api.ReleaseSession(session);
    throw error;
  }
}

interface OpenedModel {
  readonly library: OrtLibrary;
  readonly session: bigint;
  readonly signature: SessionSignature;
  readonly modelName: string;
  readonly modelDirectory: string;
}

function startInstance(
  { library, session, signature, modelName, modelDirectory }: OpenedModel,
  config: ModelConfig,
): BackendInstance {
  try {
    // Here and not in `load`: the server's own validation comes first, as it does in Triton.
    validateConfigAgainstSession(modelName, config, signature);
    const initialStates = readInitialStates(config, modelDirectory);
    return new OnnxInstance(library, { session, config, signature, initialStates });
  } catch (error) {
    library.api.ReleaseSession(session);
    throw error;
  }
}
