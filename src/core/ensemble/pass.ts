// One pass of a request through a scope of the plan: the tensors written in it and the steps begun in it. Scope 0 has one
// pass per request; each response of a decoupled step begins another, below the pass in which that step runs. Used by
// ensemble-run.ts, which counts the bytes.

import type { InputTensor } from '../../domain/tensor.ts';
import { type Route, USED_THROUGHOUT } from './route.ts';

/** A step's response may say to which sequence the steps after it belong. */
export interface SequenceOverride {
  readonly correlationId: bigint | string;
  readonly sequenceFlags: number;
}

export interface HeldTensor extends Pick<InputTensor, 'datatype' | 'shape' | 'data' | 'byteLength'> {
  readonly sequence: SequenceOverride | undefined;
}

/** An optional input that the request leaves out: it is there, and it is nothing. */
export const ABSENT = 'absent';
/** Every use of it is over. */
const LET_GO = 'let go';

interface Slot {
  value: HeldTensor | typeof ABSENT | typeof LET_GO;
  useCount: number;
}

export class Pass {
  readonly scope: number;
  readonly parent: Pass | undefined;
  readonly #slots = new Map<number, Slot>();
  readonly begunSteps = new Set<number>();
  isResponded = false;
  isClosed = false;
  /** Tensors of the step that began this pass which have not come; they may come with a later response. */
  missingCount: number;
  /** Steps that run in it, and passes below it. */
  openCount = 0;
  onClosed: (() => void) | undefined;

  constructor(scope: number, options: { parent: Pass | undefined; missingCount: number }) {
    this.scope = scope;
    this.parent = options.parent;
    this.missingCount = options.missingCount;
  }

  /** The pass of that scope to which this one belongs. */
  within(scope: number): Pass | undefined {
    let pass: Pass | undefined = this;
    while (pass !== undefined && pass.scope !== scope) pass = pass.parent;
    return pass;
  }

  has(tensor: number): boolean {
    return this.#slots.has(tensor);
  }

  valueOf(tensor: number): HeldTensor | typeof ABSENT | undefined {
    const value = this.#slots.get(tensor)?.value;
    return value === LET_GO ? undefined : value;
  }

  put(tensor: number, value: HeldTensor | typeof ABSENT, route: Route): void {
    this.#slots.set(tensor, { value, useCount: route.useCounts[tensor]! });
  }

  /** One use is over; returns the bytes that are free with it. */
  release(tensor: number): number {
    const slot = this.#slots.get(tensor);
    if (slot === undefined || slot.useCount === USED_THROUGHOUT) return 0;
    slot.useCount--;
    if (slot.useCount > 0) return 0;
    return letGo(slot);
  }

  /** Nothing more happens in it; returns the bytes that are free with it. */
  close(): number {
    this.isClosed = true;
    let freed = 0;
    for (const slot of this.#slots.values()) freed += letGo(slot);
    return freed;
  }
}

function letGo(slot: Slot): number {
  const { value } = slot;
  slot.value = LET_GO;
  return typeof value === 'string' ? 0 : value.byteLength;
}
