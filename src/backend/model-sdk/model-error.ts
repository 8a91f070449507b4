// The error that a model throws or returns when the client should read its text and get its code. Anything else that a
// model throws is a defect: INTERNAL, with the stack in the log.

import { type StatusCode, StatusError } from '../../domain/status.ts';

export class ModelError extends StatusError {
  constructor(code: StatusCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options);
    this.name = 'ModelError';
  }
}
