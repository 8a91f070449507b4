// The decision of the direct strategy, pure: given the first waiting request of every slot, whether a batch goes out now and
// how wide it is. Every slot is a fixed place of the batch, so a slot with nothing to do below one that has something
// is filled up. spec: scheduler section 2.3.

/** The first waiting request of a slot, as far as the decision needs it. */
export interface SlotFront {
  readonly batchKey: string;
  readonly queueStartMs: number;
}

export interface DirectPolicy {
  readonly queueDelayMs: number;
  /** Part of the slots that must have a request before a batch goes out early. */
  readonly slotUtilizationMin: number;
  readonly slotCount: number;
}

/** width > 0: places 0 to width - 1 go out. width = 0: look again at waitUntilMs (Infinity when nothing waits). */
export interface DirectDecision {
  readonly width: number;
  /** The place whose request gives the shapes; others go with it only if their batch keys are equal. */
  readonly lead: number;
  readonly waitUntilMs: number;
}

const NOTHING: DirectDecision = { width: 0, lead: -1, waitUntilMs: Number.POSITIVE_INFINITY };

/** `fronts[slot]` is undefined where the slot has nothing to do. */
export function formDirectBatch(
  fronts: readonly (SlotFront | undefined)[],
  policy: DirectPolicy,
  nowMs: number,
): DirectDecision {
  let lead = -1;
  let width = 0;
  let readyCount = 0;
  let oldestMs = Number.POSITIVE_INFINITY;
  for (let slot = 0; slot < fronts.length; slot++) {
    const front = fronts[slot];
    if (front === undefined) continue;
    if (lead === -1) lead = slot;
    // As in Triton a request of another shape widens the batch though its place is only filled up.
    width = slot + 1;
    readyCount++;
    if (front.queueStartMs < oldestMs) oldestMs = front.queueStartMs;
  }
  if (lead === -1) return NOTHING;
  const isPatient = policy.queueDelayMs > 0 && policy.slotUtilizationMin > 0;
  const delayEndMs = oldestMs + policy.queueDelayMs;
  if (isPatient && nowMs < delayEndMs && readyCount / policy.slotCount < policy.slotUtilizationMin) {
    return { width: 0, lead: -1, waitUntilMs: delayEndMs };
  }
  return { width, lead, waitUntilMs: nowMs };
}
