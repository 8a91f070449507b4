// Answers embedding and rerank requests: checks the JSON, tokenizes, asks the embedding engine, writes the result.

import { invalidArgument } from '../../../domain/status.ts';
import type { EmbeddingEngine } from '../engine/embedding-engine.ts';
import type { LlamaModel } from '../library/model.ts';
import type { ModelLimits } from '../plan-limits.ts';

export interface EmbeddingParts {
  readonly config: { readonly name: string };
  readonly model: LlamaModel;
  readonly embedding: EmbeddingEngine | undefined;
  readonly limits: ModelLimits;
}

type Body = Readonly<Record<string, unknown>>;

const INPUTS_MAX = 2048;

export async function answerEmbedding(parts: EmbeddingParts, body: Body, isWanted: () => boolean) {
  const { embedding, model, limits, config } = parts;
  if (embedding === undefined || limits.pooling === 'rank') {
    const hint = embedding === undefined ? '; set the parameter \'embeddings\' of its config to "true"' : '';
    throw invalidArgument(`Model ${config.name} does not support 'embed' request${hint}`);
  }
  const inputs = await readInputs(model, body.input);
  const dimensions = readDimensions(body.dimensions, model.embeddingLength);
  const vectors = await embedding.compute(inputs, isWanted);
  return {
    json: {
      embeddings: vectors.map((vector) => normalized(vector.subarray(0, dimensions))),
      prompt_tokens: countOf(inputs),
    },
    promptTokens: countOf(inputs),
  };
}

export async function answerRerank(parts: EmbeddingParts, body: Body, isWanted: () => boolean) {
  const { embedding, model, limits, config } = parts;
  if (embedding === undefined || limits.pooling !== 'rank') {
    throw invalidArgument(`Model ${config.name} does not support 'rerank' request: it is no reranking model`);
  }
  const { query, documents } = body;
  if (typeof query !== 'string') throw invalidArgument("'query' must be a string");
  const isList = Array.isArray(documents) && documents.length > 0 && documents.length <= INPUTS_MAX;
  if (!isList || documents.some((text) => typeof text !== 'string')) {
    throw invalidArgument(`'documents' must be a list of 1 to ${INPUTS_MAX} strings`);
  }
  const inputs: number[][] = [];
  for (const document of documents as string[]) inputs.push(await pairTokens(model, query, document));
  const scores = await embedding.compute(inputs, isWanted);
  const results = scores.map((score, index) => ({ index, relevance_score: score[0]! }));
  results.sort((a, b) => b.relevance_score - a.relevance_score);
  return { json: { results, prompt_tokens: countOf(inputs) }, promptTokens: countOf(inputs) };
}

/** By the template of the model, else BOS query EOS SEP document EOS, of which only those that its vocabulary adds. */
async function pairTokens(model: LlamaModel, query: string, document: string): Promise<number[]> {
  const { separatorToken } = model;
  const template = model.templateNamed('rerank');
  if (template !== undefined) {
    const text = template.replace(/\{(query|document)\}/g, (name) => (name === '{query}' ? query : document));
    return model.tokenizeAside(text, { isSpecialAdded: false, isSpecialParsed: true });
  }
  const plain = { isSpecialAdded: false, isSpecialParsed: false };
  const begin = model.isBeginAdded ? [model.beginToken] : [];
  const separator = model.isSeparatorAdded ? [separatorToken] : [];
  // Where the vocabulary has no end of text, its separator takes that place.
  const end = model.isEndAdded ? [model.endToken < 0 ? separatorToken : model.endToken] : [];
  return [
    ...[...begin, ...(await model.tokenizeAside(query, plain)), ...end, ...separator],
    ...[...(await model.tokenizeAside(document, plain)), ...end],
  ];
}

/** A string, strings, tokens, or lists of tokens. */
async function readInputs(model: LlamaModel, input: unknown): Promise<number[][]> {
  const list = Array.isArray(input) && typeof input[0] !== 'number' ? input : [input];
  if (list.length === 0 || list.length > INPUTS_MAX)
    throw invalidArgument(`'input' must have 1 to ${INPUTS_MAX} elements`);
  const inputs: number[][] = [];
  for (const element of list) inputs.push(await readInput(model, element));
  return inputs;
}

async function readInput(model: LlamaModel, element: unknown): Promise<number[]> {
  if (typeof element === 'string') {
    return model.tokenizeAside(element, { isSpecialAdded: true, isSpecialParsed: true });
  }
  const isTokens =
    Array.isArray(element) &&
    element.every((token) => Number.isInteger(token) && token >= 0 && token < model.tokenCount);
  if (isTokens) return element as number[];
  throw invalidArgument("'input' must be a string, a list of strings, or lists of tokens of this model");
}

function readDimensions(value: unknown, most: number): number {
  if (value === undefined || value === null) return most;
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number;
  throw invalidArgument(`'dimensions' must be a whole number from 1 to ${most}`);
}

function normalized(vector: Float32Array): number[] {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const scale = sum > 0 ? 1 / Math.sqrt(sum) : 0;
  return Array.from(vector, (value) => Math.fround(value * scale));
}

function countOf(inputs: readonly (readonly number[])[]): number {
  return inputs.reduce((sum, tokens) => sum + tokens.length, 0);
}
