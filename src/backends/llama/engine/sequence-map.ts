// The scheduler's sequence ids and libllama's. On a device some of libllama's ids have a sampler attached for good, so that a
// greedy token is chosen where the logits are and they need not be copied; the others give logits. Each id of the
// scheduler has one of either kind, and takes the one that suits the request which gets it.

import { type MemoryOp, TO_THE_END } from '../scheduler/step-plan.ts';

export class SequenceMap {
  /** Ids below it have a sampler; 0: there are no two kinds. */
  readonly #samplerCount: number;
  readonly #isHosted: Uint8Array;

  /** With samplers libllama needs twice the ids of the scheduler. */
  constructor(sequenceCount: number, hasSamplers: boolean) {
    this.#samplerCount = hasSamplers ? sequenceCount : 0;
    this.#isHosted = new Uint8Array(sequenceCount);
  }

  /** The id in libllama. */
  of(sequence: number): number {
    return this.#isHosted[sequence] === 1 ? sequence + this.#samplerCount : sequence;
  }

  hasSampler(sequence: number): boolean {
    return this.#samplerCount > 0 && this.#isHosted[sequence] === 0;
  }

  /** This sequence has another request now. Whatever is in its cells moves with it. */
  begin(sequence: number, isDeviceChosen: boolean, apply: (op: MemoryOp) => void): void {
    const isHosted = isDeviceChosen || this.#samplerCount === 0 ? 0 : 1;
    if (this.#isHosted[sequence] === isHosted) return;
    const before = this.of(sequence);
    this.#isHosted[sequence] = isHosted;
    apply({ kind: 'copy', from: before, to: this.of(sequence), begin: 0, end: TO_THE_END });
    apply({ kind: 'remove', sequence: before, begin: 0, end: TO_THE_END });
  }

  translate(op: MemoryOp): MemoryOp {
    if (op.kind === 'remove') return { ...op, sequence: this.of(op.sequence) };
    return { ...op, from: this.of(op.from), to: this.of(op.to) };
  }
}
