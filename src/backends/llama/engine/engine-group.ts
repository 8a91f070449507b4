// The texts of one model over several contexts, each with an engine of its own. A small model leaves most of a GPU idle in a
// step, however many rows the step has; steps of several contexts run there side by side (docs/adr/0010). Requests wait here
// until an engine has a place for them, so that none waits at one engine while another has nothing to do. With one context the
// engine is on its own.

import { internal, StatusError, unavailable } from '../../../domain/status.ts';
import type { LlamaContext } from '../library/context.ts';
import { checkAcceptable } from '../scheduler/admission.ts';
import { SchedulerRefusal, type SchedulerStats } from '../scheduler/step-plan.ts';
import { Engine, type EngineOptions, type StepReport } from './engine.ts';
import type { Generation } from './generation.ts';
import { refused } from './refusals.ts';

/** What is less does not lead a request to another context: that would only have to be fetched into the caches again. */
const REUSED_TOKENS_MIN = 64;
/** One text more in a context costs the others about as much as so many tokens of a prompt that are computed once more. */
const TOKENS_PER_TEXT = 256;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export interface EngineGroupOptions extends Omit<EngineOptions, 'context' | 'isShared'> {
  /** The limits are those of each; only the bound of the queue is for all. */
  readonly contexts: readonly LlamaContext[];
}

export class EngineGroup {
  readonly #options: EngineGroupOptions;
  readonly #engines: readonly Engine[];
  readonly #owners = new WeakMap<Generation, Engine>();
  /** Lower priorities first, then in the order of arrival. */
  readonly #queue: Generation[] = [];
  /** What each engine has told last. */
  readonly #stats: SchedulerStats[] = [];
  #isClosed = false;

  constructor(options: EngineGroupOptions) {
    this.#options = options;
    if (options.contexts.length === 0) throw internal('a group of engines needs a context');
    this.#engines = options.contexts.map(
      (context, index) =>
        new Engine({
          ...options,
          context,
          isShared: () => this.#usedCount > 1,
          onStep: (report) => this.#onStep(index, report),
        }),
    );
  }

  /** Throws when the queue is full or the prompt can never fit. */
  submit(generation: Generation): void {
    if (this.#isClosed) throw unavailable('the model is being unloaded');
    const engine = this.#queue.length === 0 ? this.#findEngine(generation) : undefined;
    if (engine !== undefined) this.#give(generation, engine);
    else this.#enqueue(generation);
  }

  cancel(generation: Generation): void {
    const place = this.#queue.indexOf(generation);
    if (place >= 0) this.#queue.splice(place, 1);
    this.#owners.get(generation)?.cancel(generation);
    this.#dispatch();
  }

  /** Ends what runs and waits with an error; resolves when no native call is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const generation of this.#queue.splice(0)) {
      generation.onError(unavailable('the model is being unloaded'));
    }
    await Promise.all(this.#engines.map((engine) => engine.close()));
  }

  /** The one with a place where the request costs least: few texts beside it, much of its prompt there. */
  #findEngine(generation: Generation): Engine | undefined {
    if (this.#engines.length === 1) return this.#engines[0];
    let best: Engine | undefined;
    let least = Number.POSITIVE_INFINITY;
    const usedCount = this.#usedCount;
    for (const engine of this.#engines) {
      const { openCount } = engine;
      const hasPlace = openCount + generation.choices.length <= this.#options.limits.runningMax;
      if (!hasPlace && openCount > 0) continue;
      // Two texts in each of two, four in each of four: a prompt that joins takes as long as a step, and longer while prompts join
      // in other contexts, too. The more contexts, the more tokens a second, and the later the first one.
      const texts = openCount > 0 ? openCount : usedCount - 0.5;
      const reused = engine.reusableTokens(generation);
      const cost = texts * TOKENS_PER_TEXT - (reused < REUSED_TOKENS_MIN ? 0 : reused);
      if (cost < least) {
        best = engine;
        least = cost;
      }
    }
    return best;
  }

  get #usedCount(): number {
    let count = 0;
    for (const { openCount } of this.#engines) if (openCount > 0) count++;
    return count;
  }

  #give(generation: Generation, engine: Engine): void {
    engine.submit(generation);
    this.#owners.set(generation, engine);
  }

  #enqueue(generation: Generation): void {
    try {
      checkAcceptable(generation.prompt.length, this.#queue.length, this.#options.limits);
    } catch (thrown) {
      throw thrown instanceof SchedulerRefusal ? refused(thrown) : thrown;
    }
    const place = this.#queue.findIndex(({ priority }) => priority > generation.priority);
    this.#queue.splice(place < 0 ? this.#queue.length : place, 0, generation);
  }

  #dispatch(): void {
    while (this.#queue.length > 0) {
      const [generation] = this.#queue;
      const engine = this.#findEngine(generation!);
      if (engine === undefined) return;
      this.#queue.shift();
      try {
        this.#give(generation!, engine);
      } catch (thrown) {
        generation!.onError(StatusError.from(thrown));
      }
    }
  }

  #onStep(index: number, { stats, statsBefore, ...work }: StepReport): void {
    this.#stats[index] = stats;
    this.#dispatch();
    const others = this.#stats.filter((_, i) => i !== index);
    const queued = this.#queue.length;
    this.#options.onStep({
      ...work,
      stats: addUp(stats, others, queued),
      statsBefore: addUp(statsBefore, others, queued),
    });
  }
}

function addUp(stats: SchedulerStats, others: readonly SchedulerStats[], queued: number): SchedulerStats {
  const total: Mutable<SchedulerStats> = { ...stats, waiting: stats.waiting + queued };
  const names = Object.keys(stats) as (keyof SchedulerStats)[];
  for (const other of others) for (const name of names) total[name] += other[name];
  return total;
}
