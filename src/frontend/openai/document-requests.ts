// Bodies of /v1/embeddings, /v1/rerank, /v1/tokenize and /v1/detokenize → the one JSON document that the model is asked with.
// Pure; runs on the thread for JSON when the body is large.

import { OPENAI_INPUTS_MAX } from '../../domain/limits.ts';
import { invalidField } from './api-error.ts';
import { readMessages } from './chat-request.ts';
import type { AnswerForm } from './document-answers.ts';
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

export interface DocumentRequest {
  readonly model: string;
  /** The input that takes the document, and what a model without it does not support. */
  readonly input: string;
  readonly what: string;
  /** JSON. */
  readonly document: Uint8Array;
  readonly form: AnswerForm;
}

function toBytes(document: JsonObject): Uint8Array {
  return Buffer.from(JSON.stringify(document));
}

export function readEmbeddings(body: JsonObject): DocumentRequest {
  const model = requireString(body, 'model');
  const input = readEmbeddingInput(body.input ?? undefined);
  const dimensions = readNumber(body, 'dimensions', { min: 1, isInteger: true });
  const isBase64 = readChoice(body, 'encoding_format', ['float', 'base64']) === 'base64';
  return {
    model,
    input: 'embedding_request',
    what: 'embeddings',
    document: toBytes({ input, ...(dimensions === undefined ? {} : { dimensions }) }),
    form: { kind: 'embeddings', model, isBase64 },
  };
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

export function readRerank(body: JsonObject): DocumentRequest {
  const model = requireString(body, 'model');
  const query = requireString(body, 'query');
  const documents = readDocuments(body);
  const topCount = readNumber(body, 'top_n', { min: 1, isInteger: true }) ?? documents.length;
  const isReturned = readBoolean(body, 'return_documents') ?? false;
  return {
    model,
    input: 'rerank_request',
    what: 'reranking',
    document: toBytes({ query, documents }),
    form: { kind: 'rerank', model, topCount, documents: isReturned ? documents : undefined },
  };
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

export function readTokenize(body: JsonObject): DocumentRequest {
  const model = requireString(body, 'model');
  const hasPieces = readBoolean(body, 'return_token_strs') ?? false;
  return {
    model,
    input: 'tokenize_request',
    what: 'tokenizing',
    document: toBytes({ ...tokenizeDocument(body), ...(hasPieces ? { with_pieces: true } : {}) }),
    form: { kind: 'tokenize', hasPieces },
  };
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

export function readDetokenize(body: JsonObject): DocumentRequest {
  const model = requireString(body, 'model');
  const tokens = readList<number>(body, 'tokens', TOKENS);
  if (tokens === undefined) throw missing('tokens');
  return {
    model,
    input: 'tokenize_request',
    what: 'tokenizing',
    document: toBytes({ tokens }),
    form: { kind: 'detokenize' },
  };
}
