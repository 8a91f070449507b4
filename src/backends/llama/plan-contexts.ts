// Over how many contexts the texts of a model are spread, and what each of them has of the model's limits. A step of a small model
// keeps a GPU waiting for its next kernel most of the time, so that several contexts compute there side by side; a large
// model's weights would only be read once more for each. Pure; docs/adr/0010 has the measurements.

import { invalidArgument } from '../../domain/status.ts';
import { CONTEXTS_MAX } from './call-threads.ts';
import type { LlamaModel } from './library/model.ts';
import type { LlamaSettings } from './llama-settings.ts';
import { hasAllLayers, type ModelFacts, type ModelLimits } from './plan-limits.ts';

/** Of the weights; they are read once for each step of each context. */
const SMALL_MODEL_BYTES = 256 * 2 ** 20;
/** A thread waits for each context, and waiting for a GPU keeps a core busy. */
const CORES_PER_CONTEXT = 2;
/** Sequences of a context for each text that runs in it: its own, and those of kept prefixes. */
const SEQUENCES_PER_TEXT = 4;

export function planContexts(
  model: ModelFacts & Pick<LlamaModel, 'byteLength'>,
  settings: LlamaSettings,
  { cellCount, contextLength, runningMax, hasDevice }: ModelLimits,
): number {
  const { contextCount, draftFile, coreCount, callThreads } = settings;
  if (contextCount !== undefined) {
    const cells = Math.floor(cellCount / contextCount);
    if (
      cells >= contextLength &&
      contextCount <= runningMax &&
      (contextCount === 1 || draftFile === undefined)
    )
      return contextCount;
    const reason =
      contextCount > runningMax
        ? `max_running is ${runningMax}`
        : cells < contextLength
          ? `each would have ${cells} of the ${cellCount} cells (kv_cells), and a request may need ${contextLength} (context_length)`
          : 'a draft model goes with one';
    throw invalidArgument(`parameter 'contexts' is "${contextCount}", but ${reason}`);
  }
  const isSmall = model.byteLength <= SMALL_MODEL_BYTES && !model.isRecurrent;
  if (!hasDevice || !hasAllLayers(model, settings) || !isSmall || draftFile !== undefined) return 1;
  const fitting = Math.min(
    CONTEXTS_MAX,
    callThreads,
    Math.floor(coreCount / CORES_PER_CONTEXT),
    runningMax,
    Math.floor(cellCount / contextLength),
  );
  return Math.max(1, fitting);
}

export function limitsOfEach(limits: ModelLimits, contextCount: number): ModelLimits {
  if (contextCount === 1) return limits;
  const share = (count: number) => Math.floor(count / contextCount);
  const runningMax = Math.ceil(limits.runningMax / contextCount);
  return {
    ...limits,
    cellCount: share(limits.cellCount),
    runningMax,
    sequenceCount: Math.min(
      limits.sequenceCount,
      runningMax * (limits.isPrefixCache ? SEQUENCES_PER_TEXT : 1),
    ),
    keptCellsMax: share(limits.keptCellsMax),
    keptCellsMin: share(limits.keptCellsMin),
    promptCells: 0,
  };
}
