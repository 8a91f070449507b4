// A radix tree of token paths, one per adapter. A node is a run of tokens and, at the same time, the run of KV cells that
// holds them; there is one node for a path, so there is one copy of its cells. Used by KvLedger, which does the counting.
//
//   root ── [system prompt] ─┬─ [question A, answer A]   tails: sequence 3
//                            └─ [question B]             tails: sequence 0
//
// A sequence holds the cells of all nodes from the root to its tail and ends exactly where the tail ends.

export interface KvSequence {
  readonly id: number;
  tail: PrefixNode;
  /** Tokens of the path from the root to the tail's end. */
  length: number;
  /** Cells the sequence has; those from `length` on are its own and not in the tree yet. */
  computed: number;
  /** Of these, so many from the first on have come again. */
  worthLength: number;
  /** No request runs on it: it only keeps its cells for the next one. */
  isKept: boolean;
}

export interface PrefixNode {
  tokens: number[];
  /** Undefined for a root, and a root only. */
  parent: PrefixNode | undefined;
  readonly children: Map<number, PrefixNode>;
  /** The sequences that end here; those that go on are found below. */
  readonly tails: Set<KvSequence>;
  /** Sequences of running requests that end here or below; with none the cells can be evicted. */
  activeCount: number;
  lastUsed: number;
}

export interface PrefixMatch {
  /** The deepest node reached. */
  readonly node: PrefixNode;
  /** How many of its tokens matched. */
  readonly nodeLength: number;
  readonly length: number;
  /** Matched tokens whose cells only kept sequences hold. */
  readonly cachedLength: number;
}

export function createNode(parent: PrefixNode | undefined, tokens: number[]): PrefixNode {
  const node = {
    tokens,
    parent,
    children: new Map(),
    tails: new Set<KvSequence>(),
    activeCount: 0,
    lastUsed: 0,
  };
  parent?.children.set(tokens[0]!, node);
  return node;
}

/** Follows tokens[begin, end) down from the end of `from`. */
export function matchPrefix(
  from: PrefixNode,
  tokens: ArrayLike<number>,
  { begin, end }: { begin: number; end: number },
): PrefixMatch {
  let node = from;
  let nodeLength = from.tokens.length;
  let at = begin;
  let cachedLength = 0;
  while (at < end && nodeLength === node.tokens.length) {
    const child = node.children.get(tokens[at]!);
    if (child === undefined) break;
    node = child;
    nodeLength = commonLength(child.tokens, tokens, { begin: at, end });
    at += nodeLength;
    if (child.activeCount === 0) cachedLength += nodeLength;
  }
  return { node, nodeLength, length: at - begin, cachedLength };
}

/** How many of run's tokens are tokens[begin, end) from its first on. */
export function commonLength(
  run: ArrayLike<number>,
  tokens: ArrayLike<number>,
  { begin, end }: { begin: number; end: number },
): number {
  const most = Math.min(run.length, end - begin);
  let length = 0;
  while (length < most && run[length] === tokens[begin + length]) length++;
  return length;
}

/** Makes a border after the first `length` tokens. The node keeps its end, so tails stay where they are. */
export function splitNode(node: PrefixNode, length: number): PrefixNode {
  if (length === node.tokens.length) return node;
  const upper = createNode(node.parent, node.tokens.slice(0, length));
  upper.activeCount = node.activeCount;
  upper.lastUsed = node.lastUsed;
  node.tokens = node.tokens.slice(length);
  node.parent = upper;
  upper.children.set(node.tokens[0]!, node);
  return upper;
}

/** Takes a border away where no sequence ends and no path branches any more. The node below keeps its end. */
export function mergeNode(node: PrefixNode): void {
  if (node.parent === undefined || node.tails.size > 0 || node.children.size !== 1) return;
  const [below] = node.children.values();
  below!.tokens = node.tokens.concat(below!.tokens);
  below!.parent = node.parent;
  // What is used often is above: it must not grow old with its tail, which is evicted first in any case.
  below!.lastUsed = Math.max(node.lastUsed, below!.lastUsed);
  node.parent.children.set(node.tokens[0]!, below!);
}

/** Any sequence that has the cells of this node. A node without one does not exist, a root may be empty. */
export function findHolder(node: PrefixNode): KvSequence {
  let at = node;
  for (;;) {
    for (const tail of at.tails) return tail;
    const [below] = at.children.values();
    if (below === undefined) throw new Error('a node of the prefix tree without a holder');
    at = below;
  }
}

export function isBelow(node: PrefixNode, upper: PrefixNode): boolean {
  for (let at: PrefixNode | undefined = node; at !== undefined; at = at.parent) {
    if (at === upper) return true;
  }
  return false;
}

/** Whether the sequence is the only one that has the cells of its tail. */
export function isExclusive({ tail }: KvSequence): boolean {
  return tail.parent !== undefined && tail.tails.size === 1 && tail.children.size === 0;
}
