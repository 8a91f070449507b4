// POST /v1/embeddings, /v1/rerank, /v1/tokenize and /v1/detokenize: one JSON document to the model, one back, each in the form
// that OpenAI, Jina and Cohere, and vLLM have given it.

import { OPENAI_INPUTS_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import { type ApiCall, askModel, createId, modelOf } from './api-call.ts';
import { invalidField } from './api-error.ts';
import { readMessages } from './chat-request.ts';
import {
  isObject,
  type JsonObject,
  missing,
  OBJECTS,
  readBoolean,
  readChoice,
  readList,
  readNumber,
  readString,
  requireString,
  TOKENS,
  wrong,
} from './read-fields.ts';

export async function embeddings(api: ApiCall): Promise<string> {
  const { body } = api;
  const name = requireString(body, 'model');
  const input = readEmbeddingInput(body.input ?? undefined);
  const dimensions = readNumber(body, 'dimensions', { min: 1, isInteger: true });
  const isBase64 = readChoice(body, 'encoding_format', ['float', 'base64']) === 'base64';
  const answer = await askModel(api, modelOf(api, name), {
    input: 'embedding_request',
    document: { input, ...(dimensions === undefined ? {} : { dimensions }) },
    what: 'embeddings',
  });
  const { embeddings: vectors, prompt_tokens: tokens } = readAnswer(answer);
  if (!Array.isArray(vectors)) throw unreadable();
  const data = vectors.map((vector: number[], index) => ({
    object: 'embedding',
    index,
    embedding: isBase64 ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector,
  }));
  return JSON.stringify({ object: 'list', data, model: name, usage: usageOf(tokens) });
}

function readEmbeddingInput(input: unknown): unknown {
  if (input === undefined) throw missing('input');
  if (typeof input === 'string' && input !== '') return input;
  if (Array.isArray(input) && input.length > 0) {
    if (input.every(TOKENS.check)) return input;
    if (input.length > OPENAI_INPUTS_MAX) {
      throw invalidField(
        'input',
        `'input' has ${input.length} texts, at most ${OPENAI_INPUTS_MAX} are allowed.`,
      );
    }
    const isText = (entry: unknown): boolean => typeof entry === 'string' && entry !== '';
    const isTokens = (entry: unknown): boolean =>
      Array.isArray(entry) && entry.length > 0 && entry.every(TOKENS.check);
    if (input.every(isText) || input.every(isTokens)) return input;
  }
  throw wrong('input', 'a string, strings, token ids or lists of token ids, none of them empty', input);
}

export async function rerank(api: ApiCall): Promise<string> {
  const { body } = api;
  const name = requireString(body, 'model');
  const query = requireString(body, 'query');
  const documents = readDocuments(body);
  const topCount = readNumber(body, 'top_n', { min: 1, isInteger: true }) ?? documents.length;
  const isDocumentReturned = readBoolean(body, 'return_documents') ?? false;
  const answer = await askModel(api, modelOf(api, name), {
    input: 'rerank_request',
    document: { query, documents },
    what: 'reranking',
  });
  const { results, prompt_tokens: tokens } = readAnswer(answer);
  if (!Array.isArray(results)) throw unreadable();
  const best = (results as { index: number; relevance_score: number }[])
    .toSorted((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, topCount)
    .map(({ index, relevance_score }) => ({
      index,
      relevance_score,
      ...(isDocumentReturned ? { document: { text: documents[index] } } : {}),
    }));
  return JSON.stringify({ id: createId('rerank'), model: name, results: best, usage: usageOf(tokens) });
}

function readDocuments(body: JsonObject): string[] {
  const { documents } = body;
  if (documents === undefined || documents === null) throw missing('documents');
  if (!Array.isArray(documents) || documents.length === 0)
    throw wrong('documents', 'a list of texts', documents);
  if (documents.length > OPENAI_INPUTS_MAX) {
    throw invalidField(
      'documents',
      `'documents' are ${documents.length}, at most ${OPENAI_INPUTS_MAX} are allowed.`,
    );
  }
  return documents.map((document: unknown, i) => {
    const text = isObject(document) ? document.text : document;
    if (typeof text !== 'string') throw wrong(`documents[${i}]`, 'a string or {"text": …}', document);
    return text;
  });
}

export async function tokenize(api: ApiCall): Promise<string> {
  const { body } = api;
  const model = modelOf(api, requireString(body, 'model'));
  const hasPieces = readBoolean(body, 'return_token_strs') ?? false;
  const answer = await askModel(api, model, {
    input: 'tokenize_request',
    document: { ...tokenizeDocument(body), ...(hasPieces ? { with_pieces: true } : {}) },
    what: 'tokenizing',
  });
  const { tokens, count, max_model_len, pieces } = readAnswer(answer);
  return JSON.stringify({ count, max_model_len, tokens, ...(hasPieces ? { token_strs: pieces } : {}) });
}

function tokenizeDocument(body: JsonObject): JsonObject {
  const prompt = readString(body, 'prompt');
  if (prompt !== undefined) {
    return {
      text: prompt,
      add_special: readBoolean(body, 'add_special_tokens') ?? true,
      parse_special: true,
    };
  }
  if (body.messages === undefined) throw missing('prompt');
  const tools = readList<JsonObject>(body, 'tools', OBJECTS);
  return { messages: readMessages(body), ...(tools === undefined ? {} : { tools }) };
}

export async function detokenize(api: ApiCall): Promise<string> {
  const { body } = api;
  const model = modelOf(api, requireString(body, 'model'));
  const tokens = readList<number>(body, 'tokens', TOKENS);
  if (tokens === undefined) throw missing('tokens');
  const asked = { input: 'tokenize_request', document: { tokens }, what: 'tokenizing' };
  return JSON.stringify({ prompt: readAnswer(await askModel(api, model, asked)).text });
}

function readAnswer(answer: unknown): JsonObject {
  if (!isObject(answer)) throw unreadable();
  return answer;
}

function unreadable(): Error {
  return internal('the answer of the model cannot be read');
}

function usageOf(tokens: unknown): object {
  const promptTokens = typeof tokens === 'number' ? tokens : 0;
  return { prompt_tokens: promptTokens, total_tokens: promptTokens };
}
