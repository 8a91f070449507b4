// Says whether a text is of a grammar, by sets of places where each rule can end. Only tests call it: they prove
// the grammars of this folder with it where libllama is not to be had.
import { type Grammar, type GrammarNode, parseGrammar } from './gbnf-parser.ts';

export function createMatcher(grammarText: string): (text: string) => boolean {
  const grammar = parseGrammar(grammarText);
  return (text) => {
    const codes = [...text].map((character) => character.codePointAt(0)!);
    return endsOf(grammar, codes).has(codes.length);
  };
}

function endsOf(grammar: Grammar, codes: readonly number[]): ReadonlySet<number> {
  const known = new Map<string, ReadonlySet<number>[]>();

  function endsOfRule(name: string, start: number): ReadonlySet<number> {
    const ends = known.get(name) ?? [];
    known.set(name, ends);
    const found = ends[start] ?? endsOfNode(grammar.get(name)!, start);
    ends[start] = found;
    return found;
  }

  function endsOfNode(node: GrammarNode, start: number): ReadonlySet<number> {
    switch (node.kind) {
      case 'characters': {
        const code = codes[start];
        if (code === undefined) return new Set();
        const isInside = node.ranges.some(([low, high]) => low <= code && code <= high);
        return isInside !== node.isNegated ? new Set([start + 1]) : new Set();
      }
      case 'rule':
        return endsOfRule(node.name, start);
      case 'choice':
        return new Set(node.items.flatMap((item) => [...endsOfNode(item, start)]));
      case 'sequence':
        return node.items.reduce<ReadonlySet<number>>(
          (starts, item) => after(starts, item),
          new Set([start]),
        );
      case 'repeat':
        return endsOfRepeat(node, start);
      case 'token':
        throw new Error(`a token has no text here: ${node.text}`);
    }
  }

  function endsOfRepeat(node: GrammarNode & { kind: 'repeat' }, start: number): ReadonlySet<number> {
    const all = new Set<number>(node.min === 0 ? [start] : []);
    let starts: ReadonlySet<number> = new Set([start]);
    for (let count = 1; starts.size > 0 && (node.max === null || count <= node.max); count++) {
      const ends = after(starts, node.item);
      // From `min` on, only places not seen before can lead further.
      starts = count > node.min ? new Set([...ends].filter((end) => !all.has(end))) : ends;
      if (count >= node.min) for (const end of ends) all.add(end);
    }
    return all;
  }

  function after(starts: ReadonlySet<number>, item: GrammarNode): ReadonlySet<number> {
    return new Set([...starts].flatMap((start) => [...endsOfNode(item, start)]));
  }

  return endsOfRule('root', 0);
}
