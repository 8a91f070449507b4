// POST /v1/embeddings, /v1/rerank, /v1/tokenize and /v1/detokenize: one JSON document to the model, one back.

import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import { type ApiCall, askModel, modelOf } from './api-call.ts';
import { jsonAnswer } from './api-error.ts';
import { writeDocument } from './document-answers.ts';
import type { DocumentRequest } from './document-requests.ts';
import { writeOnThread } from './large-json.ts';

export async function answerDocument(api: ApiCall, request: DocumentRequest): Promise<void> {
  const { form } = request;
  const { jsonThread } = api.services;
  const body = await askModel(api, modelOf(api, request.model), request, (answer) =>
    answer.length <= JSON_INLINE_BYTES_MAX
      ? writeDocument(answer, form)
      : writeOnThread(jsonThread, answer, form),
  );
  api.call.respond(jsonAnswer(body));
}
