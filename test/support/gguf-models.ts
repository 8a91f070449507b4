// Small GGUF files that the tests of the llama backend make: a draft model and LoRA adapters for a given model, and tiny
// encoders with random weights, with a pooled vector or with a relevance score. The names are those libllama looks for.
import { createPrng, type Prng } from '../../src/lib/prng.ts';
import {
  booleanValue,
  float32Value,
  floatTensor,
  type GgufTensor,
  type GgufValue,
  int32sValue,
  readGguf,
  readInt32s,
  readTexts,
  textsValue,
  textValue,
  uint32Value,
  writeGguf,
} from './gguf-file.ts';

const LLAMA = {
  vectorLength: 64,
  hiddenLength: 128,
  headCount: 4,
  sharedHeadCount: 2,
  contextLength: 2048,
} as const;

/**
 * A Llama with random weights and the first tokens of another model's vocabulary. It writes nonsense, but its numbers are
 * F32 and its choices are clear, so that no order of summation changes them. The layers of a shallower one with the same
 * seed are the first ones of a deeper one: they agree often, though not always, as a draft and its target do.
 */
export function writeTinyLlama(
  path: string,
  options: {
    readonly vocabularyOf: string;
    readonly tokenCount: number;
    readonly layerCount: number;
    readonly seed: number;
    readonly metadata?: Readonly<Record<string, GgufValue>>;
  },
): void {
  const { tokenCount, layerCount } = options;
  const { vectorLength, hiddenLength, headCount, sharedHeadCount } = LLAMA;
  const prng = createPrng(options.seed);
  const sharedLength = (vectorLength / headCount) * sharedHeadCount;
  const matrix = (name: string, inputs: number, outputs: number) =>
    randomTensor(prng, `${name}.weight`, [inputs, outputs], Math.sqrt(1 / inputs));
  const tensors = [
    randomTensor(prng, 'token_embd.weight', [vectorLength, tokenCount], 1),
    randomTensor(prng, 'output.weight', [vectorLength, tokenCount], 1),
    ones('output_norm.weight', vectorLength),
  ];
  for (let layer = 0; layer < layerCount; layer++) {
    const block = `blk.${layer}`;
    tensors.push(
      ones(`${block}.attn_norm.weight`, vectorLength),
      ones(`${block}.ffn_norm.weight`, vectorLength),
    );
    tensors.push(
      matrix(`${block}.attn_q`, vectorLength, vectorLength),
      matrix(`${block}.attn_k`, vectorLength, sharedLength),
    );
    tensors.push(
      matrix(`${block}.attn_v`, vectorLength, sharedLength),
      matrix(`${block}.attn_output`, vectorLength, vectorLength),
    );
    tensors.push(
      matrix(`${block}.ffn_gate`, vectorLength, hiddenLength),
      matrix(`${block}.ffn_up`, vectorLength, hiddenLength),
    );
    tensors.push(matrix(`${block}.ffn_down`, hiddenLength, vectorLength));
  }
  const metadata = new Map([
    ...firstTokens(options.vocabularyOf, tokenCount),
    ['general.architecture', textValue('llama')],
    ['llama.block_count', uint32Value(layerCount)],
    ['llama.context_length', uint32Value(LLAMA.contextLength)],
    ['llama.embedding_length', uint32Value(vectorLength)],
    ['llama.feed_forward_length', uint32Value(hiddenLength)],
    ['llama.attention.head_count', uint32Value(headCount)],
    ['llama.attention.head_count_kv', uint32Value(sharedHeadCount)],
    ['llama.attention.layer_norm_rms_epsilon', float32Value(1e-5)],
    ['llama.rope.dimension_count', uint32Value(vectorLength / headCount)],
    ['llama.vocab_size', uint32Value(tokenCount)],
    ...Object.entries(options.metadata ?? {}),
  ] as const);
  writeGguf(path, { metadata, tensors });
}

/** The vocabulary of a BPE model without its later tokens, which are made of the earlier ones. */
function firstTokens(file: string, tokenCount: number): [string, GgufValue][] {
  const { metadata } = readGguf(file);
  const tokens = readTexts(metadata.get('tokenizer.ggml.tokens')!).slice(0, tokenCount);
  const types = readInt32s(metadata.get('tokenizer.ggml.token_type')!).slice(0, tokenCount);
  const known = new Set(tokens);
  const merges = readTexts(metadata.get('tokenizer.ggml.merges')!);
  return [
    ...[...metadata].filter(([name]) => name.startsWith('tokenizer.')),
    ['tokenizer.ggml.tokens', textsValue(tokens)],
    ['tokenizer.ggml.token_type', int32sValue(types)],
    ['tokenizer.ggml.merges', textsValue(merges.filter((merge) => known.has(merge.replace(' ', ''))))],
  ];
}

/** A model with two of its tokens called otherwise: as many tokens, but another vocabulary. */
export function writeOtherVocabulary(path: string, options: { readonly from: string }): void {
  const { metadata, tensors } = readGguf(options.from);
  const tokens = readTexts(metadata.get('tokenizer.ggml.tokens')!);
  [tokens[300], tokens[301]] = [tokens[301]!, tokens[300]!];
  metadata.set('tokenizer.ggml.tokens', textsValue(tokens));
  writeGguf(path, { metadata, tensors });
}

/** Random low-rank matrices for the attention of every layer; of strength 0 they change nothing. */
export function writeLora(
  path: string,
  options: { readonly from: string; readonly strength: number; readonly seed: number },
): void {
  const rank = 4;
  const prng = createPrng(options.seed);
  const tensors: GgufTensor[] = [];
  for (const { name, dims } of readGguf(options.from).tensors) {
    if (!/\.attn_(q|v)\.weight$/.test(name)) continue;
    const [inputs, outputs] = dims as [number, number];
    tensors.push(randomTensor(prng, `${name}.lora_a`, [inputs, rank], 1 / Math.sqrt(inputs)));
    tensors.push(randomTensor(prng, `${name}.lora_b`, [rank, outputs], options.strength));
  }
  const metadata = new Map<string, GgufValue>([
    ['general.architecture', textValue('llama')],
    ['general.type', textValue('adapter')],
    ['adapter.type', textValue('lora')],
    ['adapter.lora.alpha', float32Value(rank)],
  ]);
  writeGguf(path, { metadata, tensors });
}

export const ENCODER = { contextLength: 64, vectorLength: 32 } as const;
const POOLING = { none: 0, mean: 1, cls: 2, rank: 4 } as const;
const HIDDEN_LENGTH = 64;
const LAYERS = 2;

/** A BERT of two layers that knows letters, digits and some words; with `rank` it has a head that scores a pair. */
export function writeEncoder(
  path: string,
  options: {
    readonly pooling: keyof typeof POOLING;
    readonly seed: number;
    readonly metadata?: Record<string, GgufValue>;
  },
): void {
  const { contextLength, vectorLength } = ENCODER;
  const prng = createPrng(options.seed);
  const tokens = vocabulary();
  const tensor = (name: string, dims: readonly number[], scale = 0.3) =>
    randomTensor(prng, name, dims, scale);
  const norm = (name: string) => [
    ones(`${name}.weight`, vectorLength),
    tensor(`${name}.bias`, [vectorLength]),
  ];
  const linear = (name: string, inputs: number, outputs: number) => [
    tensor(`${name}.weight`, [inputs, outputs]),
    tensor(`${name}.bias`, [outputs], 0.1),
  ];
  const tensors = [
    tensor('token_embd.weight', [vectorLength, tokens.length], 1),
    tensor('position_embd.weight', [vectorLength, contextLength]),
    tensor('token_types.weight', [vectorLength, 2]),
    ...norm('token_embd_norm'),
  ];
  for (let layer = 0; layer < LAYERS; layer++) {
    const block = `blk.${layer}`;
    for (const part of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) {
      tensors.push(...linear(`${block}.${part}`, vectorLength, vectorLength));
    }
    tensors.push(...norm(`${block}.attn_output_norm`), ...norm(`${block}.layer_output_norm`));
    tensors.push(...linear(`${block}.ffn_up`, vectorLength, HIDDEN_LENGTH));
    tensors.push(...linear(`${block}.ffn_down`, HIDDEN_LENGTH, vectorLength));
  }
  if (options.pooling === 'rank') {
    tensors.push(...linear('cls', vectorLength, vectorLength), ...linear('cls.output', vectorLength, 1));
  }
  const metadata = new Map([
    ...encoderMetadata(tokens),
    ['bert.pooling_type', uint32Value(POOLING[options.pooling])],
  ] as const);
  for (const [name, value] of Object.entries(options.metadata ?? {})) metadata.set(name, value);
  writeGguf(path, { metadata, tensors });
}

function encoderMetadata(tokens: readonly string[]): [string, GgufValue][] {
  return [
    ['general.architecture', textValue('bert')],
    ['bert.block_count', uint32Value(LAYERS)],
    ['bert.context_length', uint32Value(ENCODER.contextLength)],
    ['bert.embedding_length', uint32Value(ENCODER.vectorLength)],
    ['bert.feed_forward_length', uint32Value(HIDDEN_LENGTH)],
    ['bert.attention.head_count', uint32Value(2)],
    ['bert.attention.layer_norm_epsilon', float32Value(1e-12)],
    ['bert.attention.causal', booleanValue(false)],
    ['tokenizer.ggml.model', textValue('bert')],
    ['tokenizer.ggml.tokens', textsValue(tokens)],
    [
      'tokenizer.ggml.token_type',
      int32sValue(tokens.map((_, id) => (id < SPECIAL.length ? CONTROL : NORMAL))),
    ],
    ['tokenizer.ggml.token_type_count', uint32Value(2)],
    ['tokenizer.ggml.padding_token_id', uint32Value(0)],
    ['tokenizer.ggml.unknown_token_id', uint32Value(1)],
    ['tokenizer.ggml.bos_token_id', uint32Value(2)],
    ['tokenizer.ggml.cls_token_id', uint32Value(2)],
    // The format spells it so.
    ['tokenizer.ggml.seperator_token_id', uint32Value(3)],
    ['tokenizer.ggml.mask_token_id', uint32Value(4)],
  ];
}

const SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];
const NORMAL = 1;
const CONTROL = 3;

/** A word begins with ▁ there; what goes on does not. */
function vocabulary(): string[] {
  const characters = [...'abcdefghijklmnopqrstuvwxyz0123456789.,?!'];
  const words = ['the', 'cat', 'dog', 'sea', 'sky', 'blue', 'sat', 'on', 'mat', 'is', 'what', 'where'];
  return [...SPECIAL, ...[...characters, ...words].map((word) => `\u2581${word}`), ...characters];
}

/** Uniform in [-scale, scale]. */
function randomTensor(prng: Prng, name: string, dims: readonly number[], scale: number): GgufTensor {
  const values = new Float32Array(dims.reduce((product, dim) => product * dim, 1));
  for (let i = 0; i < values.length; i++) values[i] = (prng.float() * 2 - 1) * scale;
  return floatTensor(name, dims, values);
}

function ones(name: string, length: number): GgufTensor {
  return floatTensor(name, [length], new Float32Array(length).fill(1));
}
