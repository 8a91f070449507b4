// The one response of an ordinary model, kept until the request is finished. A model that sends none or several, or an
// error, fails the request. Used by the unary sinks of every frontend.

import type { InferResponse } from '../domain/request.ts';
import { internal, type StatusError } from '../domain/status.ts';

export class SingleResponse {
  #outcome: InferResponse | StatusError | undefined;
  #count = 0;

  /** Always true: there is room for one. */
  add(outcome: InferResponse | StatusError): boolean {
    this.#outcome = outcome;
    this.#count++;
    return true;
  }

  get outcome(): InferResponse | StatusError {
    if (this.#outcome === undefined || this.#count !== 1) {
      return internal(`expected a single response, got ${this.#count}`);
    }
    return this.#outcome;
  }
}
