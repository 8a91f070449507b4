// The ids of answers: a prefix that says what it is, and chance. The answers of every endpoint have one.

import { randomBytes } from 'node:crypto';

const ID_BYTES = 12;

export function createId(prefix: string): string {
  return `${prefix}-${randomBytes(ID_BYTES).toString('hex')}`;
}
