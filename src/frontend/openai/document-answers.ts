// The JSON document that a model answers with → the answer of /v1/embeddings, /v1/rerank, /v1/tokenize or /v1/detokenize, each
// in the form that OpenAI, Jina and Cohere, and vLLM have given it. Runs on the thread for JSON when the document is large.

import { internal } from '../../domain/status.ts';
import { createId } from './answer-id.ts';
import { isObject, type JsonObject } from './read-fields.ts';
import { TEXT_OUTPUT } from './text-model.ts';

/** What the answer takes from the request. */
export type AnswerForm =
  | { readonly kind: 'embeddings'; readonly model: string; readonly isBase64: boolean }
  | {
      readonly kind: 'rerank';
      readonly model: string;
      readonly topCount: number;
      /** Undefined unless they are wanted back. */
      readonly documents: readonly string[] | undefined;
    }
  | { readonly kind: 'tokenize'; readonly hasPieces: boolean }
  | { readonly kind: 'detokenize' };

export function writeDocument(answer: Buffer, form: AnswerForm): Buffer {
  return Buffer.from(JSON.stringify(documentOf(parseAnswer(answer), form)));
}

function parseAnswer(answer: Buffer): JsonObject {
  let document: unknown;
  try {
    document = JSON.parse(answer.toString());
  } catch {
    throw internal(`the model's output '${TEXT_OUTPUT}' is not JSON`);
  }
  if (!isObject(document)) throw unreadable();
  return document;
}

function documentOf(answer: JsonObject, form: AnswerForm): object {
  switch (form.kind) {
    case 'embeddings':
      return embeddingsDocument(answer, form);
    case 'rerank':
      return rerankDocument(answer, form);
    case 'tokenize': {
      const { tokens, count, max_model_len, pieces } = answer;
      return { count, max_model_len, tokens, ...(form.hasPieces ? { token_strs: pieces } : {}) };
    }
    case 'detokenize':
      return { prompt: answer.text };
  }
}

function embeddingsDocument(
  { embeddings: vectors, prompt_tokens: tokens }: JsonObject,
  { model, isBase64 }: Extract<AnswerForm, { kind: 'embeddings' }>,
): object {
  if (!Array.isArray(vectors)) throw unreadable();
  const data = vectors.map((vector: number[], index) => ({
    object: 'embedding',
    index,
    embedding: isBase64 ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector,
  }));
  return { object: 'list', data, model, usage: usageOf(tokens) };
}

function rerankDocument(
  { results, prompt_tokens: tokens }: JsonObject,
  { model, topCount, documents }: Extract<AnswerForm, { kind: 'rerank' }>,
): object {
  if (!Array.isArray(results)) throw unreadable();
  const best = (results as { index: number; relevance_score: number }[])
    .toSorted((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, topCount)
    .map(({ index, relevance_score }) => ({
      index,
      relevance_score,
      ...(documents === undefined ? {} : { document: { text: documents[index] } }),
    }));
  return { id: createId('rerank'), model, results: best, usage: usageOf(tokens) };
}

function unreadable(): Error {
  return internal('the answer of the model cannot be read');
}

function usageOf(tokens: unknown): object {
  const promptTokens = typeof tokens === 'number' ? tokens : 0;
  return { prompt_tokens: promptTokens, total_tokens: promptTokens };
}
