// Stands between a target and the client for one request: the answers pass under the router's name, and their end is told
// to the router, once. Made by router-model.ts.

import type { InferResponse, ParameterValue, ResponseSink } from '../../domain/request.ts';
import type { StatusError } from '../../domain/status.ts';
import type { WatchedRequest } from './canary-watch.ts';
import type { RouterTarget } from './router-target.ts';

/** The parameter of an answer that names the target, where `report_target` asks for it. */
export const TARGET_PARAMETER = 'nereid_target';

export interface RouterSinkOwner {
  readonly name: string;
  readonly version: number;
  readonly isTargetReported: boolean;
  /** `error` is undefined when the request succeeded. Called before the client gets the end. */
  onEnd(request: RouterSink, error: StatusError | undefined): void;
}

export class RouterSink implements ResponseSink, WatchedRequest {
  readonly target: RouterTarget;
  readonly startMs: number;
  readonly batchSize: number;
  isLate = false;
  readonly #owner: RouterSinkOwner;
  readonly #inner: ResponseSink;
  #firstError: StatusError | undefined;

  constructor(
    owner: RouterSinkOwner,
    parts: { target: RouterTarget; inner: ResponseSink; startMs: number; batchSize: number },
  ) {
    this.#owner = owner;
    this.target = parts.target;
    this.#inner = parts.inner;
    this.startMs = parts.startMs;
    this.batchSize = parts.batchSize;
  }

  get onRoom(): (() => void) | undefined {
    return this.#inner.onRoom;
  }

  set onRoom(listener: (() => void) | undefined) {
    this.#inner.onRoom = listener;
  }

  send(response: InferResponse, isFinal: boolean): boolean {
    const { id, outputs } = response;
    const { name, version } = this.#owner;
    const parameters = this.#owner.isTargetReported ? this.#reported(response) : response.parameters;
    return this.#inner.send({ modelName: name, modelVersion: version, id, parameters, outputs }, isFinal);
  }

  sendError(error: StatusError, isFinal: boolean): boolean {
    this.#firstError ??= error;
    return this.#inner.sendError(error, isFinal);
  }

  finish(): void {
    this.#owner.onEnd(this, this.#firstError);
    this.#inner.finish();
  }

  fail(error: StatusError): void {
    this.#owner.onEnd(this, error);
    this.#inner.fail(error);
  }

  #reported({ parameters }: InferResponse): Map<string, ParameterValue> {
    return new Map(parameters).set(TARGET_PARAMETER, this.target.name);
  }
}
