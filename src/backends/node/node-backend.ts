// The node backend: models written in JavaScript or TypeScript against `nereid/model`, each instance in a host process of
// its own. docs/node-models.md is the page for their authors.

import type { Backend, BackendModel, LoadContext } from '../../backend/sdk.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { StatusError, unsupported } from '../../domain/status.ts';
import { completeConfig } from './complete-config.ts';
import { findModelFile } from './find-model-file.ts';
import { importModel } from './import-model.ts';
import { ModelHandle } from './model-handle.ts';
import { ModelTables } from './model-tables.ts';
import { NodeInstance } from './node-instance.ts';

export const nodeBackend: Backend = {
  name: 'node',
  async load(context: LoadContext): Promise<BackendModel> {
    const { config, isAutoComplete, versionDirectory } = context;
    const definition = await importModel(findModelFile(versionDirectory, config.default_model_filename));
    const settings = definition.config;
    return {
      config: isAutoComplete && settings !== undefined ? completeConfig(config, settings) : config,
      isRequestInfoWanted: true,
      async start(served, calls) {
        refuseStates(served);
        const handle = new ModelHandle(context, served, calls);
        try {
          await definition.initialize?.(handle.contextOf([]));
        } catch (thrown) {
          handle.logFailure('initialize', thrown);
          throw initializeError(thrown);
        }
        return new NodeInstance(definition, new ModelTables(served), handle);
      },
    };
  },
};

/** A model in JavaScript lives as long as its sequences and can keep what it likes. */
function refuseStates({ name, sequence_batching }: ModelConfig): void {
  if ((sequence_batching?.state.length ?? 0) === 0) return;
  throw unsupported(
    `the node backend keeps no implicit state for model '${name}': remove 'state' from sequence_batching and keep the ` +
      'state in the model, by request.correlationId',
  );
}

function initializeError(thrown: unknown): StatusError {
  if (thrown instanceof StatusError) return thrown;
  const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
  return new StatusError('INTERNAL', `initialize failed: ${text}`, { cause: thrown });
}
