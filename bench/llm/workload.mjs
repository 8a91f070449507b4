// What every system of the LLM bench is asked: the prompts and the lengths of the answers. Pure, so that two processes
// with the same seed ask the same. Called by run.mjs and by each load.

/** Each of them is one token of SmolLM2 when a space stands before it, so that words count as tokens. */
const WORDS = (
  'time year people way day man thing woman life child world school state family student group country problem hand ' +
  'part place case week company system program question work government number night point home water room mother ' +
  'area money story fact month lot right study book eye job word business issue side kind head house service friend ' +
  'father power hour game line end member law car city community name president team minute idea body information ' +
  'back parent face others level office door health person art war history party result change morning reason ' +
  'research girl guy moment air teacher force education'
).split(' ');

export const PROMPT_TOKENS = 32;
export const OUTPUT_TOKENS = 64;
export const PREFIX_TOKENS = 1000;

/**
 * short:  every prompt is its own.
 * shared: the same 1,000 tokens, then 32 of its own: a system prompt.
 * unique: 1,032 tokens of its own: what the shared one would cost if nothing were reused.
 */
export const SCENARIOS = {
  short: { ownTokens: PROMPT_TOKENS, sharedTokens: 0, concurrencies: [1, 4, 16, 64], windowFactor: 1 },
  shared: {
    ownTokens: PROMPT_TOKENS,
    sharedTokens: PREFIX_TOKENS,
    concurrencies: [1, 4, 16, 64],
    windowFactor: 1,
  },
  // A CPU computes three such prompts in ten seconds, so its window is longer.
  unique: { ownTokens: PREFIX_TOKENS + PROMPT_TOKENS, sharedTokens: 0, concurrencies: [4], windowFactor: 4 },
};

/** Of one request, with room for what a tokenizer adds. */
export function cellsOf(scenario) {
  const { ownTokens, sharedTokens } = SCENARIOS[scenario];
  return ownTokens + sharedTokens + OUTPUT_TOKENS + 16;
}

/** The same for all requests of a point; empty where nothing is shared. */
export function prefixOf({ scenario, seed }) {
  return words(SCENARIOS[scenario].sharedTokens, createRandom(seed));
}

/** What is the request's own; never twice the same within a run. */
export function suffixOf({ scenario, seed, ordinal }) {
  return words(SCENARIOS[scenario].ownTokens, createRandom(seed + 7919 * (ordinal + 1)));
}

export function promptOf(request) {
  return prefixOf(request) + suffixOf(request);
}

function words(count, random) {
  let text = '';
  for (let i = 0; i < count; i++) text += ` ${WORDS[Math.floor(random() * WORDS.length)]}`;
  return text;
}

/** mulberry32: small, and the same everywhere. */
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
