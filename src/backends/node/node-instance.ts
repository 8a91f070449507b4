// Runs the model's execute and turns what it gives, or throws, into results. An execute that answers at once costs no
// promise. A decoupled execute is not waited for: its requests end with its promise, and the next batch may begin.

import type { ExecuteAnswer, ModelDefinition, RequestAnswer } from '../../backend/model-sdk/define-model.ts';
import type { InferResponse } from '../../backend/model-sdk/model-request.ts';
import {
  type BackendInstance,
  BY_SENDER,
  type ExecuteBatch,
  ExecuteError,
  type ExecuteOutputs,
  type ExecuteReply,
  type ExecuteResult,
  type ResponseSender,
} from '../../backend/sdk.ts';
import { StatusError } from '../../domain/status.ts';
import { NumberTable } from '../../lib/number-table.ts';
import type { ModelHandle } from './model-handle.ts';
import { ModelRequest } from './model-request.ts';
import { ModelSender } from './model-sender.ts';
import type { ModelTables } from './model-tables.ts';

export class NodeInstance implements BackendInstance {
  readonly #definition: ModelDefinition;
  readonly #tables: ModelTables;
  readonly #handle: ModelHandle;
  /** Batches whose execution, or whose requests, are not over. */
  readonly #open = new NumberTable<readonly ModelRequest[]>();

  constructor(definition: ModelDefinition, tables: ModelTables, handle: ModelHandle) {
    this.#definition = definition;
    this.#tables = tables;
    this.#handle = handle;
  }

  execute(
    batch: ExecuteBatch,
    senderOf: (request: number) => ResponseSender,
  ): ExecuteReply | Promise<ExecuteReply> {
    const startMs = performance.now();
    if (this.#tables.isDecoupled) return this.#executeDecoupled(batch, senderOf);
    const requests = batch.requests.map((_, r) => new ModelRequest(batch, r, this.#tables, undefined));
    this.#open.set(batch.id, requests);
    const close = (results: readonly ExecuteResult[]): ExecuteReply => {
      this.#open.delete(batch.id);
      return replyOf(results, startMs);
    };
    try {
      const returned = this.#definition.execute(requests, this.#handle.contextOf(requests));
      const isLater = isPromise(returned) || (Array.isArray(returned) && returned.some(isPromise));
      if (isLater) return this.#collectLater(requests, returned).then(close);
      const answers = this.#checkAnswers(returned as ExecuteAnswer, requests.length);
      return close(answers.map((answer, r) => this.#convert(requests[r]!, answer as RequestAnswer)));
    } catch (thrown) {
      return close(this.#failAll(requests, thrown));
    }
  }

  /** The senders of decoupled requests are told themselves; here it is the model's signal. */
  cancelRequest(batchId: number, request: number): void {
    this.#open.get(batchId)?.[request]?.markCancelled();
  }

  cancel(): void {}

  async close(): Promise<void> {
    try {
      await this.#definition.finalize?.();
    } catch (thrown) {
      this.#handle.logFailure('finalize', thrown);
    }
  }

  async #collectLater(
    requests: readonly ModelRequest[],
    returned: ReturnType<ModelDefinition['execute']>,
  ): Promise<ExecuteResult[]> {
    try {
      const answers = this.#checkAnswers(await returned, requests.length);
      return await Promise.all(
        answers.map(async (answer, r) => {
          try {
            return this.#convert(requests[r]!, await answer);
          } catch (thrown) {
            return this.#failure([requests[r]!], thrown);
          }
        }),
      );
    } catch (thrown) {
      return this.#failAll(requests, thrown);
    }
  }

  #executeDecoupled(batch: ExecuteBatch, senderOf: (request: number) => ResponseSender): ExecuteReply {
    const startMs = performance.now();
    const senders: ModelSender[] = [];
    const requests = batch.requests.map((_, r) => {
      const sender = new ModelSender(senderOf(r), (response) => this.#convert(requests[r]!, response));
      senders.push(sender);
      return new ModelRequest(batch, r, this.#tables, sender);
    });
    this.#open.set(batch.id, requests);
    void this.#runDecoupled(requests, senders).finally(() => this.#open.delete(batch.id));
    return replyOf(
      batch.requests.map(() => BY_SENDER),
      startMs,
    );
  }

  /** Never rejects. */
  async #runDecoupled(requests: readonly ModelRequest[], senders: readonly ModelSender[]): Promise<void> {
    try {
      const returned = await this.#definition.execute(requests, this.#handle.contextOf(requests));
      const answers = returned === undefined ? [] : this.#checkAnswers(returned, requests.length);
      await Promise.all(
        senders.map(async (sender, r) => {
          try {
            sender.finish((await answers[r]) as InferResponse | Error | undefined);
          } catch (thrown) {
            sender.fail(this.#failure([requests[r]!], thrown));
          }
        }),
      );
    } catch (thrown) {
      const error = this.#failure(requests, thrown);
      for (const sender of senders) sender.fail(error);
    }
  }

  #checkAnswers(returned: ExecuteAnswer, count: number): readonly (RequestAnswer | Promise<RequestAnswer>)[] {
    const { modelName } = this.#tables;
    if (!Array.isArray(returned)) {
      throw new StatusError(
        'INTERNAL',
        `execute of model '${modelName}' must return an array with one response for each request, not ${returned === null ? 'null' : typeof returned}`,
      );
    }
    if (returned.length !== count) {
      throw new StatusError(
        'INTERNAL',
        `execute of model '${modelName}' returned ${returned.length} responses for ${count} requests`,
      );
    }
    return returned;
  }

  #convert(request: ModelRequest, answer: RequestAnswer): ExecuteOutputs | StatusError {
    if (answer instanceof Error) {
      const code = answer instanceof StatusError ? answer.code : 'INTERNAL';
      return new ExecuteError(code, answer.message, 'answered');
    }
    try {
      return this.#tables.toOutputs(answer as InferResponse, request.rules);
    } catch (thrown) {
      return this.#failure([request], thrown);
    }
  }

  #failAll(requests: readonly ModelRequest[], thrown: unknown): ExecuteError[] {
    const error = this.#failure(requests, thrown);
    return requests.map(() => error);
  }

  /** What a model throws because its clients have gone is no defect of it. */
  #failure(requests: readonly ModelRequest[], thrown: unknown): ExecuteError {
    if (requests.every((request) => request.isCancelled)) return new ExecuteError('CANCELLED', '', 'failed');
    if (thrown instanceof StatusError) return new ExecuteError(thrown.code, thrown.message, 'failed');
    this.#handle.logFailure('execute', thrown);
    const text = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown);
    return new ExecuteError('INTERNAL', `model '${this.#tables.modelName}' failed: ${text}`, 'failed');
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | undefined)?.then === 'function';
}

function replyOf(results: readonly ExecuteResult[], startMs: number): ExecuteReply {
  const computeInferNs = (performance.now() - startMs) * 1e6;
  return { results, computeInputNs: 0, computeInferNs, computeOutputNs: 0 };
}
