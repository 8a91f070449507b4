import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createNode,
  findHolder,
  isBelow,
  isExclusive,
  matchPrefix,
  mergeNode,
  splitNode,
} from './prefix-tree.ts';

function sequenceAt(tail: ReturnType<typeof createNode>, length: number) {
  const sequence = { id: 7, tail, length, computed: length, worthLength: 0, isKept: false };
  tail.tails.add(sequence);
  return sequence;
}

test('a match ends inside a node, counts what only kept sequences hold, and stops at its end', () => {
  const root = createNode(undefined, []);
  const system = createNode(root, [1, 2, 3]);
  system.activeCount = 1;
  const question = createNode(system, [4, 5, 6]);
  const match = matchPrefix(root, [1, 2, 3, 4, 5, 9], { begin: 0, end: 6 });
  assert.equal(match.node, question);
  assert.deepEqual([match.nodeLength, match.length, match.cachedLength], [2, 5, 2]);
  const short = matchPrefix(root, [1, 2, 3, 4], { begin: 0, end: 2 });
  assert.deepEqual([short.node, short.nodeLength, short.length], [system, 2, 2]);
  assert.equal(matchPrefix(root, [9], { begin: 0, end: 1 }).length, 0);
  assert.equal(matchPrefix(system, [0, 0, 0, 4, 5], { begin: 3, end: 5 }).length, 2);
});

test('a split keeps the end of the node, and so the tails', () => {
  const root = createNode(undefined, []);
  const node = createNode(root, [1, 2, 3, 4]);
  node.activeCount = 2;
  const sequence = sequenceAt(node, 4);
  const upper = splitNode(node, 1);
  assert.deepEqual([upper.tokens, node.tokens], [[1], [2, 3, 4]]);
  assert.deepEqual([root.children.get(1), upper.children.get(2), node.parent], [upper, node, upper]);
  assert.equal(upper.activeCount, 2);
  assert.equal(sequence.tail, node);
  assert.equal(findHolder(upper), sequence);
  assert.equal(splitNode(node, 3), node);
  assert.ok(isBelow(node, upper) && isBelow(node, node) && !isBelow(upper, node));
});

test('a border is taken away only where nothing ends and nothing branches', () => {
  const root = createNode(undefined, []);
  const node = createNode(root, [1, 2, 3, 4]);
  sequenceAt(node, 4);
  const upper = splitNode(node, 1);
  const branch = createNode(upper, [7]);
  mergeNode(upper);
  assert.equal(node.parent, upper);
  upper.children.delete(branch.tokens[0]!);
  mergeNode(upper);
  assert.deepEqual([node.tokens, node.parent, root.children.get(1)], [[1, 2, 3, 4], root, node]);
  mergeNode(root);
  assert.equal(node.parent, root);
});

test('a tail is exclusive when no other ends there or goes on from there', () => {
  const root = createNode(undefined, []);
  const node = createNode(root, [1]);
  const sequence = sequenceAt(node, 1);
  assert.ok(isExclusive(sequence));
  createNode(node, [2]);
  assert.ok(!isExclusive(sequence));
  assert.ok(!isExclusive(sequenceAt(root, 0)));
});
