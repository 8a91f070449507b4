// The books of the KV cache: which sequence holds which cells, what is kept for reuse, and the memory ops that make libllama
// agree. Called by StepScheduler only. Every change of the books writes its op at once, so the ops in their order lead
// from what libllama has to what is written here; `takeOps` hands them over before each decode.

import { KeepPolicy } from './keep-policy.ts';
import {
  createNode,
  findHolder,
  isBelow,
  isExclusive,
  type KvSequence,
  matchPrefix,
  mergeNode,
  type PrefixMatch,
  type PrefixNode,
  splitNode,
} from './prefix-tree.ts';
import { type MemoryOp, type SchedulerLimits, TO_THE_END } from './step-plan.ts';

/**
 * Equal tokens that two requests generate at the same time are shared after so many, not one by one: each op walks over
 * all cells in libllama, and 64 equal greedy requests would cost 126 of them in every step. Sequences differ in when
 * they do it by up to as many, so that it does not come all at once either.
 */
const LOOSE_CELLS = 32;
/** So many cells are evicted at least where there are as many: a full cache is not trimmed in every step. */
const EVICTION_CELLS_MIN = 16;

export class KvLedger {
  readonly #cellCount: number;
  readonly #keep: KeepPolicy;
  readonly #isPrefixReuse: boolean;
  readonly #freeIds: number[];
  readonly #roots = new Map<number, PrefixNode>();
  readonly #kept = new Set<KvSequence>();
  #ops: MemoryOp[] = [];
  #cellsUsed = 0;
  #cellsCached = 0;
  #cellsEvicted = 0;
  #sequencesUsed = 0;
  /** Grows with every use of a path: the order of least recent use. */
  #useCount = 0;

  constructor(
    limits: Pick<
      SchedulerLimits,
      'cellCount' | 'sequenceCount' | 'isPrefixReuse' | 'keptCellsMax' | 'keptCellsMin'
    >,
  ) {
    this.#cellCount = limits.cellCount;
    this.#keep = new KeepPolicy(limits);
    this.#isPrefixReuse = limits.isPrefixReuse;
    this.#freeIds = Array.from({ length: limits.sequenceCount }, (_, i) => limits.sequenceCount - 1 - i);
  }

  get cellsUsed(): number {
    return this.#cellsUsed;
  }
  get cellsCached(): number {
    return this.#cellsCached;
  }
  get cellsEvicted(): number {
    return this.#cellsEvicted;
  }
  /** Cells that are free or can be made so without touching a running request. */
  get cellsAvailable(): number {
    return this.#cellCount - this.#cellsUsed + this.#cellsCached;
  }
  get sequencesUsed(): number {
    return this.#sequencesUsed;
  }
  get sequencesKept(): number {
    return this.#kept.size;
  }

  takeOps(): MemoryOp[] {
    const ops = this.#ops;
    if (ops.length > 0) this.#ops = [];
    return ops;
  }

  /** What the cache already has of the first `end` tokens; changes nothing. */
  probe(adapter: number, tokens: readonly number[], end: number): PrefixMatch {
    return matchPrefix(this.#root(adapter), tokens, { begin: 0, end });
  }

  /** A sequence for a request that begins, with all cells of its first `end` tokens that are there. */
  open(adapter: number, tokens: readonly number[], end: number): KvSequence {
    const root = this.#root(adapter);
    const match = matchPrefix(root, tokens, { begin: 0, end });
    const node = splitNode(match.node, match.nodeLength);
    const sequence = this.#sequenceAt(node, match.length) ?? this.#emptySequence(root);
    sequence.isKept = false;
    this.#kept.delete(sequence);
    this.#useCount++;
    for (let at = sequence.tail; at.parent !== undefined; at = at.parent) this.#activate(at);
    if (sequence.tail !== node) this.#follow(sequence, node, match.length);
    sequence.worthLength = match.length;
    this.#trim(this.#keep.cellsMax);
    return sequence;
  }

  /** Of a prompt that begins, so many tokens were there already. */
  noteReuse(adapter: number, prompt: readonly number[], reusedTokens: number): void {
    if (this.#isPrefixReuse) this.#keep.noteBegin(adapter, prompt, reusedTokens);
  }

  /** Takes over what others have computed meanwhile of the tokens up to `end`; answers how many more it has. */
  share(sequence: KvSequence, tokens: readonly number[], end: number): number {
    if (sequence.computed !== sequence.length) return 0;
    const match = matchPrefix(sequence.tail, tokens, { begin: sequence.length, end });
    if (match.length === 0) return 0;
    this.#useCount++;
    this.#follow(sequence, splitNode(match.node, match.nodeLength), match.length);
    sequence.worthLength = sequence.length;
    return match.length;
  }

  /** The next `count` of the tokens now have cells of this sequence. */
  append(sequence: KvSequence, tokens: readonly number[], count: number): void {
    this.#cellsUsed += count;
    sequence.computed += count;
    const looseMax = LOOSE_CELLS + (sequence.id % LOOSE_CELLS);
    const isKnown = !isExclusive(sequence) && sequence.tail.children.has(tokens[sequence.length]!);
    const isDue = count > 1 || sequence.computed - sequence.length >= looseMax;
    if (!isKnown || isDue) this.settle(sequence, tokens);
  }

  /** Puts cells that are not in the tree yet there; where the tree has the same tokens, its cells are shared instead. */
  settle(sequence: KvSequence, tokens: readonly number[]): void {
    const { tail, length: begin, computed: end } = sequence;
    if (begin === end) return;
    const match = matchPrefix(tail, tokens, { begin, end });
    if (match.length > 0) {
      this.#ops.push({ kind: 'remove', sequence: sequence.id, begin, end: begin + match.length });
      this.#cellsUsed -= match.length;
      this.#follow(sequence, splitNode(match.node, match.nodeLength), match.length);
    }
    if (sequence.length < end) this.#grow(sequence, tokens, end);
  }

  /** Takes cells off that were decoded and never appended: rejected proposals, or a step that failed. */
  cut(sequence: KvSequence, begin: number): void {
    this.#ops.push({ kind: 'remove', sequence: sequence.id, begin, end: TO_THE_END });
  }

  /**
   * The request has left its sequence. Its cells are kept until they are needed, where that can be of use: of one that will come
   * back all of them.
   */
  retire(
    sequence: KvSequence,
    { adapter, tokens }: { readonly adapter: number; readonly tokens: readonly number[] },
    isOver: boolean,
  ): void {
    this.settle(sequence, tokens);
    const comeAgain = this.#isPrefixReuse ? this.#keep.noteEnd(adapter, tokens) : 0;
    sequence.worthLength = isOver ? Math.max(sequence.worthLength, comeAgain) : sequence.length;
    this.#useCount++;
    for (let at = sequence.tail; at.parent !== undefined; at = at.parent) {
      at.lastUsed = this.#useCount;
      if (--at.activeCount === 0) this.#cellsCached += at.tokens.length;
    }
    sequence.isKept = true;
    // Where others hold all of its cells, the id would keep nothing.
    if (!this.#isPrefixReuse || !isExclusive(sequence)) this.#drop(sequence);
    else this.#kept.add(sequence);
    if (!this.#keep.keepsTails) this.#cutTails(sequence);
    // Cells that nobody computes beside cost nothing: who comes next may want them.
    const isIdle = this.#sequencesUsed === this.#kept.size;
    this.#trim(isIdle ? this.#keep.idleCellsMax : this.#keep.cellsMax);
  }

  #trim(cellsMax: number): void {
    while (this.#cellsCached > cellsMax) {
      const surplus = this.#cellsCached - cellsMax;
      this.#evict(this.#leastRecentlyUsed(), Math.max(surplus, EVICTION_CELLS_MIN));
    }
  }

  /** But not that of the text which has just ended: whoever asks the same twice finds it. */
  #cutTails(last: KvSequence): void {
    for (const sequence of [...this.#kept]) {
      while (sequence !== last && this.#kept.has(sequence) && sequence.length > sequence.worthLength) {
        this.#evict(sequence, sequence.length - sequence.worthLength);
      }
    }
  }

  /** Makes `count` cells free; the caller has seen that they are available. */
  makeFree(count: number): void {
    for (;;) {
      const missing = count - (this.#cellCount - this.#cellsUsed);
      if (missing <= 0) return;
      this.#evict(this.#leastRecentlyUsed(), Math.max(missing, EVICTION_CELLS_MIN));
    }
  }

  dropKept(): void {
    for (const sequence of [...this.#kept]) this.#drop(sequence);
  }

  /** Without reuse every sequence has a tree of its own. */
  #root(adapter: number): PrefixNode {
    if (!this.#isPrefixReuse) return createNode(undefined, []);
    let root = this.#roots.get(adapter);
    if (root === undefined) {
      root = createNode(undefined, []);
      this.#roots.set(adapter, root);
    }
    return root;
  }

  #activate(node: PrefixNode): void {
    node.lastUsed = this.#useCount;
    if (node.activeCount++ === 0) this.#cellsCached -= node.tokens.length;
  }

  /** A kept sequence that ends there, or must end there because ids are short. */
  #sequenceAt(node: PrefixNode, length: number): KvSequence | undefined {
    for (const tail of node.tails) if (tail.isKept) return tail;
    if (this.#freeIds.length > 0) return undefined;
    const victim = this.#leastRecentlyUsed();
    if (node.parent === undefined || !isBelow(victim.tail, node)) {
      this.#drop(victim);
      return undefined;
    }
    const left = victim.tail;
    left.tails.delete(victim);
    node.tails.add(victim);
    victim.tail = node;
    victim.length = length;
    victim.computed = length;
    this.cut(victim, length);
    this.#prune(left);
    return victim;
  }

  #emptySequence(root: PrefixNode): KvSequence {
    const id = this.#freeIds.pop();
    if (id === undefined) throw new Error('no sequence id is free');
    this.#sequencesUsed++;
    const sequence = { id, tail: root, length: 0, computed: 0, worthLength: 0, isKept: false };
    root.tails.add(sequence);
    return sequence;
  }

  /** Leads a running sequence down to a node, `count` tokens below its tail, by sharing the cells of who is there. */
  #follow(sequence: KvSequence, node: PrefixNode, count: number): void {
    const begin = sequence.length;
    const end = begin + count;
    this.#ops.push({ kind: 'copy', from: findHolder(node).id, to: sequence.id, begin, end });
    for (let at = node; at !== sequence.tail; at = at.parent!) this.#activate(at);
    const left = sequence.tail;
    left.tails.delete(sequence);
    sequence.tail = node;
    sequence.length = end;
    sequence.computed = Math.max(sequence.computed, end);
    node.tails.add(sequence);
    // A kept sequence that ended here keeps nothing any more that this one does not hold.
    for (const tail of [...node.tails]) if (tail.isKept) this.#drop(tail);
    mergeNode(left);
  }

  /** Writes the tokens up to `end` into the tree as new ones: on the tail where no other has it, else below it. */
  #grow(sequence: KvSequence, tokens: readonly number[], end: number): void {
    let { tail } = sequence;
    if (isExclusive(sequence)) {
      for (let i = sequence.length; i < end; i++) tail.tokens.push(tokens[i]!);
    } else {
      tail.tails.delete(sequence);
      tail = createNode(tail, tokens.slice(sequence.length, end));
      tail.tails.add(sequence);
      tail.activeCount = 1;
      tail.lastUsed = this.#useCount;
      sequence.tail = tail;
    }
    sequence.length = end;
  }

  #leastRecentlyUsed(): KvSequence {
    let least: KvSequence | undefined;
    for (const sequence of this.#kept) {
      if (least === undefined || sequence.tail.lastUsed < least.tail.lastUsed) least = sequence;
    }
    if (least === undefined) throw new Error('no kept prefix is left to evict');
    return least;
  }

  /** Cuts up to `count` cells off the end of a kept sequence, at most its last node. */
  #evict(sequence: KvSequence, count: number): void {
    const { tail } = sequence;
    const cellsBefore = this.#cellsUsed;
    const parent = tail.parent!;
    if (tail.tokens.length > count) {
      tail.tokens.length -= count;
      sequence.length -= count;
      this.#cellsUsed -= count;
      this.#cellsCached -= count;
    } else if (parent.parent === undefined || parent.children.size > 1 || parent.tails.size > 0) {
      this.#drop(sequence);
    } else {
      tail.tails.delete(sequence);
      parent.tails.add(sequence);
      sequence.tail = parent;
      sequence.length -= tail.tokens.length;
      this.#prune(tail);
    }
    if (this.#kept.has(sequence)) {
      sequence.computed = sequence.length;
      this.cut(sequence, sequence.length);
    }
    this.#cellsEvicted += cellsBefore - this.#cellsUsed;
  }

  /** Gives up a kept sequence: its id, and the cells that no other holds. */
  #drop(sequence: KvSequence): void {
    this.cut(sequence, 0);
    this.#kept.delete(sequence);
    sequence.tail.tails.delete(sequence);
    this.#prune(sequence.tail);
    this.#freeIds.push(sequence.id);
    this.#sequencesUsed--;
  }

  /** Takes out nodes that nobody holds any more; no request runs on them. */
  #prune(from: PrefixNode): void {
    let node = from;
    while (node.parent !== undefined && node.tails.size === 0 && node.children.size === 0) {
      this.#cellsUsed -= node.tokens.length;
      this.#cellsCached -= node.tokens.length;
      node.parent.children.delete(node.tokens[0]!);
      node = node.parent;
    }
    mergeNode(node);
  }
}
