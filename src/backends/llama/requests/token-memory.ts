// Beginnings of texts whose tokens are known: a system prompt is tokenized once, not with every question. Tokens do not
// depend on what is far away, so a text may be cut where none can lie across: between two words. Pure; PromptTokenizer does the
// tokenizing, and checks each cut before it is remembered.

export interface KnownBeginning {
  /** Goes on behind the cut for a while: what a tokenizer sees there is the same in every text that begins so. */
  readonly text: string;
  readonly cut: number;
  readonly tokens: readonly number[];
}

/** Shorter ones are tokenized sooner than looked up. */
const LENGTH_MIN = 1024;
/** Of one text, in characters. */
const LENGTH_MAX = 262_144;
/** Longer than a special token, or than what a tokenizer looks ahead. */
const MARGIN = 64;
/** Of a cut there is one in every few words; code and tables have fewer. */
const CUT_SEARCH_MAX = 512;
const TEXTS_MAX = 8;
const BEGINNINGS_MAX = 32;
const ALL_LENGTHS_MAX = 2_097_152;
/** Texts that differ here are not compared any further. */
const GLANCE = 64;

export class TokenMemory {
  /** The most recent last, both. */
  readonly #texts: string[] = [];
  readonly #beginnings: KnownBeginning[] = [];

  /** The longest one that the text has. */
  find(text: string): KnownBeginning | undefined {
    let longest: KnownBeginning | undefined;
    for (const beginning of this.#beginnings) {
      if (beginning.cut > (longest?.cut ?? 0) && text.startsWith(beginning.text)) longest = beginning;
    }
    if (longest !== undefined) moveToEnd(this.#beginnings, longest);
    return longest;
  }

  /** Where the text could be cut, so that `learn` makes more of it known than `knownLength`; undefined: nowhere. */
  noteText(text: string, knownLength: number): number | undefined {
    if (text.length < knownLength + LENGTH_MIN || text.length > LENGTH_MAX) return undefined;
    let common = 0;
    for (const earlier of this.#texts) common = Math.max(common, commonLength(earlier, text, knownLength));
    this.#texts.push(text);
    if (this.#texts.length > TEXTS_MAX) this.#texts.shift();
    if (common < knownLength + LENGTH_MIN) return undefined;
    return findCut(text, common - MARGIN);
  }

  /** `tokens` are those of the text up to the cut. */
  learn(text: string, cut: number, tokens: readonly number[]): void {
    const beginning = { text: text.slice(0, cut + MARGIN), cut, tokens };
    // Of several that came at once, each has learnt it.
    if (this.#beginnings.some((known) => known.text === beginning.text)) return;
    this.#beginnings.push(beginning);
    const isTooMuch = () => this.#beginnings.reduce((sum, { cut }) => sum + cut, 0) > ALL_LENGTHS_MAX;
    while (this.#beginnings.length > BEGINNINGS_MAX || isTooMuch()) this.#beginnings.shift();
  }
}

function moveToEnd<T>(list: T[], item: T): void {
  list.splice(list.indexOf(item), 1);
  list.push(item);
}

/** `knownLength`: so far they are alike, or not worth comparing. */
function commonLength(one: string, other: string, knownLength: number): number {
  const most = Math.min(one.length, other.length);
  if (one.slice(0, GLANCE) !== other.slice(0, GLANCE)) return 0;
  if (knownLength > 0 && one.slice(0, knownLength) !== other.slice(0, knownLength)) return 0;
  let length = knownLength;
  while (length < most && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

/** The last place up to `end` between two words of plain letters: whichever rule a tokenizer has, a new word begins with the space. */
function findCut(text: string, end: number): number | undefined {
  for (let at = end; at > Math.max(1, end - CUT_SEARCH_MAX); at--) {
    if (text[at] === ' ' && isLetter(text.charCodeAt(at - 1)) && isLetter(text.charCodeAt(at + 1))) return at;
  }
  return undefined;
}

function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}
