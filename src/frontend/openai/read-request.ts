// The body of a request → what its endpoint works with, by the name of the request. Pure; openai-routes.ts calls it, for a large
// body on the thread for JSON.

import { StatusError } from '../../domain/status.ts';
import { invalidRequest } from './api-error.ts';
import { readDetokenize, readEmbeddings, readRerank, readTokenize } from './document-requests.ts';
import { prepareChat, prepareCompletion } from './prepare-request.ts';
import { isObject, type JsonObject } from './read-fields.ts';

const READERS = {
  chat: prepareChat,
  completion: prepareCompletion,
  embeddings: readEmbeddings,
  rerank: readRerank,
  tokenize: readTokenize,
  detokenize: readDetokenize,
};

export type RequestName = keyof typeof READERS;
export type RequestOf<K extends RequestName> = ReturnType<(typeof READERS)[K]>;

export function readRequest<K extends RequestName>(name: K, pieces: readonly Buffer[]): RequestOf<K> {
  return READERS[name](parseBody(pieces)) as RequestOf<K>;
}

function parseBody(pieces: readonly Buffer[]): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch (thrown) {
    throw invalidRequest(
      `We could not parse the JSON body of your request: ${StatusError.from(thrown).message}`,
    );
  }
  if (!isObject(body)) throw invalidRequest('The body of the request must be a JSON object.');
  return body;
}
