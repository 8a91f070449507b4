// Who may run, over all models (--rate-limit=execution_count). Instances ask before they take a batch and give their
// resources back when it is over; the decision is choose-next.ts's. Without the flag none of this exists.
//
//   resting ──asks──▶ waiting ──its turn──▶ called ──batch──▶ running ──over, or host lost──▶ waiting
//                        │ has no work        │ did not use it until the end of the turn
//                        └────▶ resting ◀─────┘

import type { Admission } from '../../instance/admission.ts';
import { type Candidate, chooseNext } from './choose-next.ts';
import { type InstanceLimits, poolSizes, type ResourceLimit, type ResourceNeeds } from './resources.ts';

export interface RateLimiterOptions {
  readonly limits: readonly ResourceLimit[];
  /** Runs a function at the end of the current turn of the event loop, in the order of the calls. */
  readonly defer: (fn: () => void) => void;
}

export class RateLimiter {
  readonly #limits: readonly ResourceLimit[];
  readonly #defer: (fn: () => void) => void;
  readonly #tickets = new Set<Ticket>();
  readonly #waiting = new Set<Ticket>();
  readonly #called = new Set<Ticket>();
  /** By resource key: the size of the pool less what is used and what is kept for those called. */
  readonly #free = new Map<string, number>();
  #sizes = new Map<string, number>();
  #nextWaitOrder = 1;
  #settleCount = 0;

  constructor(options: RateLimiterOptions) {
    this.#limits = options.limits;
    this.#defer = options.defer;
  }

  /**
   * The admissions of a model's instances, in their order; all or, when one could never run, none. `onTurn` tells the
   * model that an instance which was refused may run now.
   */
  register(instances: readonly InstanceLimits[], onTurn: () => void): Admission[] {
    const added: Ticket[] = [];
    try {
      for (const limits of instances) {
        const ticket = new Ticket(this, { limits, onTurn, siblings: added });
        added.push(ticket);
        this.#tickets.add(ticket);
        this.#resize();
      }
    } catch (thrown) {
      for (const ticket of added) this.#tickets.delete(ticket);
      this.#resize();
      throw thrown;
    }
    return added;
  }

  /** True: it may begin a batch in this turn of the event loop. False: it waits, and is told. */
  ask(ticket: Ticket): boolean {
    if (ticket.state === 'called') return true;
    if (ticket.state === 'running' || !this.#tickets.has(ticket)) return false;
    if (ticket.state === 'resting') this.#wait(ticket);
    ticket.doubt = 'none';
    if (!this.#choose().includes(ticket)) return false;
    this.#call(ticket);
    this.#settleSoon();
    return true;
  }

  begin(ticket: Ticket): void {
    if (ticket.state !== 'called')
      throw new Error('a batch for an instance that the rate limiter holds back');
    this.#called.delete(ticket);
    ticket.state = 'running';
    for (const other of this.#waiting) {
      if (hasCommonKey(other.needs, ticket.needs)) other.overtakenCount++;
    }
    // Perhaps it took the very request they wait for.
    for (const sibling of ticket.siblings) {
      if (sibling.state === 'waiting' && sibling.doubt === 'none') sibling.doubt = 'raised';
    }
  }

  /** The batch is over, or its host is lost. What was not running only loses its place. */
  end(ticket: Ticket): void {
    if (ticket.state === 'resting') return;
    const wasRunning = ticket.state === 'running';
    this.#rest(ticket);
    if (wasRunning) {
      ticket.executionCount++;
      // Its scheduler has just been told. Until it has asked again, or not, others do not pass for being quicker.
      this.#wait(ticket);
      ticket.doubt = 'told';
    }
    this.#settleSoon();
  }

  leave(ticket: Ticket): void {
    if (!this.#tickets.delete(ticket)) return;
    this.#rest(ticket);
    this.#resize();
    this.#settleSoon();
  }

  #choose(): Ticket[] {
    return chooseNext(this.#waiting, { free: this.#free, instanceCount: this.#tickets.size });
  }

  #wait(ticket: Ticket): void {
    ticket.state = 'waiting';
    ticket.waitOrder = this.#nextWaitOrder++;
    ticket.overtakenCount = 0;
    this.#waiting.add(ticket);
  }

  #call(ticket: Ticket): void {
    this.#waiting.delete(ticket);
    this.#called.add(ticket);
    ticket.state = 'called';
    this.#add(ticket.needs, -1);
  }

  #rest(ticket: Ticket): void {
    if (ticket.state === 'called' || ticket.state === 'running') this.#add(ticket.needs, 1);
    this.#waiting.delete(ticket);
    this.#called.delete(ticket);
    ticket.state = 'resting';
  }

  #add(needs: ResourceNeeds, sign: 1 | -1): void {
    for (const [key, { count }] of needs) this.#free.set(key, (this.#free.get(key) ?? 0) + sign * count);
  }

  /** Pools follow the instances there are; what is in use stays in use. */
  #resize(): void {
    const sizes = poolSizes(this.#tickets, this.#limits);
    for (const key of new Set([...this.#sizes.keys(), ...sizes.keys()])) {
      const grownBy = (sizes.get(key) ?? 0) - (this.#sizes.get(key) ?? 0);
      const free = (this.#free.get(key) ?? 0) + grownBy;
      if (free === 0 && !sizes.has(key)) this.#free.delete(key);
      else this.#free.set(key, free);
    }
    this.#sizes = sizes;
  }

  /** Once every scheduler has had its say in this turn; only the last of several in one turn does it. */
  #settleSoon(): void {
    const count = ++this.#settleCount;
    this.#defer(() => {
      if (count === this.#settleCount) this.#settle();
    });
  }

  /** One that waits without work would keep resources from others: its model is told once, and asks again or not. */
  #resolveDoubts(told: Set<() => void>): void {
    for (const ticket of [...this.#waiting]) {
      if (ticket.doubt === 'told') this.#rest(ticket);
      if (ticket.doubt !== 'raised') continue;
      ticket.doubt = 'told';
      told.add(ticket.onTurn);
    }
  }

  /** Each wait is called once; who does not use it has to ask again, so nobody is woken in a loop. */
  #settle(): void {
    for (const ticket of [...this.#called]) this.#rest(ticket);
    const told = new Set<() => void>();
    this.#resolveDoubts(told);
    for (const ticket of this.#choose()) {
      this.#call(ticket);
      told.add(ticket.onTurn);
    }
    if (told.size === 0) return;
    for (const onTurn of told) onTurn();
    // After the schedulers that were told, which look at their queues at the end of this turn.
    this.#settleSoon();
  }
}

/** What an instance needs of the limiter besides itself. */
interface TicketOptions {
  readonly limits: InstanceLimits;
  readonly onTurn: () => void;
  /** The instances of the same model, itself included. */
  readonly siblings: readonly Ticket[];
}

/** The place of one instance. */
class Ticket implements Admission, Candidate {
  readonly needs: ResourceNeeds;
  readonly priority: number;
  readonly onTurn: () => void;
  readonly siblings: readonly Ticket[];
  readonly #limiter: RateLimiter;
  state: 'resting' | 'waiting' | 'called' | 'running' = 'resting';
  executionCount = 0;
  overtakenCount = 0;
  waitOrder = 0;
  /** Whether there still is work for one that waits: raised when a sibling began, then told to the model. */
  doubt: 'none' | 'raised' | 'told' = 'none';

  constructor(limiter: RateLimiter, options: TicketOptions) {
    this.#limiter = limiter;
    this.needs = options.limits.needs;
    this.priority = options.limits.priority;
    this.onTurn = options.onTurn;
    this.siblings = options.siblings;
  }

  ask(): boolean {
    return this.#limiter.ask(this);
  }

  begin(): void {
    this.#limiter.begin(this);
  }

  end(): void {
    this.#limiter.end(this);
  }

  leave(): void {
    this.#limiter.leave(this);
  }
}

function hasCommonKey(a: ResourceNeeds, b: ResourceNeeds): boolean {
  for (const key of a.keys()) {
    if (b.has(key)) return true;
  }
  return false;
}
