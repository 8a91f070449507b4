// What a model needs of its scheduler, whichever the config asks for: batcher.ts for single requests and dynamic batches,
// sequence/ for stateful models. Every request that `enqueue` accepts gets exactly one end.

import type { StatusError } from '../../domain/status.ts';
import type { ReceivedPart } from '../../instance/part-frame.ts';
import type { ReceivedReply } from '../../instance/response-frame.ts';
import type { Entry, InstancePort } from './entry.ts';

export interface DrainOptions {
  /**
   * Sequences that have begun may come to their end, by their last request or by idleness. For a server that exits: until
   * then its clients still reach it.
   */
  readonly areSequencesAwaited?: boolean;
}

export interface Scheduler {
  /** Requests not yet answered, waiting or executing. */
  readonly openCount: number;
  /** Throws when the request cannot be accepted; then it was never counted. */
  enqueue(entry: Entry): void;
  /** The client has gone. */
  cancel(entry: Entry): void;
  /** The instances that wait for a request which an instance was given. */
  ancestorsOf(parent: { batchId: number; request: number }): readonly object[];
  onReply(reply: ReceivedReply): void;
  onPart(part: ReceivedPart): void;
  /** The instance will answer nothing of what it was given. */
  onLost(instance: InstancePort, error: StatusError): void;
  /** An instance became ready, or went away for good. */
  onInstanceChange(): void;
  /** Refuses new requests; resolves when every accepted one has been answered. Sequences that have begun may go on. */
  drain(options?: DrainOptions): Promise<void>;
  /** Answers everything that still waits or runs with `error`; the end of a drain that took too long. */
  failAll(error: StatusError): void;
}
