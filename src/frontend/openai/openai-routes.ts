// The paths of the OpenAI API: /v1 beside the inference API, and on a port of its own with health and metrics. Checks in this
// order: path, method, restricted API, API key, size, JSON; then the endpoint answers. Every error leaves in OpenAI's form.

import { OPENAI_BODY_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError } from '../../domain/status.ts';
import type { HttpRoutes, RoutedAnswer, RoutedCall, RoutePlan } from '../http-routes.ts';
import type { RestrictedCategory } from '../services.ts';
import type { ApiCall } from './api-call.ts';
import { ApiError, answerOf, invalidRequest, jsonAnswer } from './api-error.ts';
import { chatCompletions } from './chat-endpoint.ts';
import { completions } from './completion-endpoint.ts';
import { detokenize, embeddings, rerank, tokenize } from './document-endpoints.ts';
import { modelById, modelList } from './models-endpoint.ts';
import { isObject, type JsonObject } from './read-fields.ts';
import type { OpenAiServices } from './services.ts';

/** `isAlone`: all paths of a listener, not only /v1. */
export function createOpenAiRoutes(
  services: OpenAiServices,
  options: { readonly isAlone: boolean },
): HttpRoutes {
  return {
    begin: (call) => {
      const isOurs = options.isAlone || call.path === API || call.path.startsWith(`${API}/`);
      if (!isOurs) return undefined;
      const headMs = performance.now();
      try {
        const route = findRoute(call.path, options.isAlone);
        check(services, call, route);
        return route.begin(services, call, headMs);
      } catch (thrown) {
        const answer = answerOf(ApiError.from(thrown));
        return { isBodyKept: false, onBody: () => call.respond(answer) };
      }
    },
  };
}

const API = '/v1';

interface ApiRoute {
  readonly method: 'GET' | 'POST';
  /** Undefined: can not be restricted. */
  readonly category: RestrictedCategory | undefined;
  /** False: no API key is asked for. */
  readonly isKeyed: boolean;
  begin(services: OpenAiServices, call: RoutedCall, headMs: number): RoutePlan;
}

/** An endpoint that answers by itself. */
function generation(endpoint: (api: ApiCall) => void | Promise<void>): ApiRoute {
  return { method: 'POST', category: 'inference', isKeyed: true, begin: withBody(endpoint) };
}

function document(endpoint: (api: ApiCall) => Promise<string>): ApiRoute {
  return generation(async (api) => api.call.respond(jsonAnswer(await endpoint(api))));
}

function getter(
  category: RestrictedCategory | undefined,
  answer: (services: OpenAiServices) => RoutedAnswer,
): ApiRoute {
  return {
    method: 'GET',
    category,
    isKeyed: category === 'model-repository',
    begin: (services, call) => ({
      isBodyKept: false,
      onBody: () => guarded(services, call, () => call.respond(answer(services))),
    }),
  };
}

const ROUTES: Readonly<Record<string, ApiRoute>> = {
  '/v1/chat/completions': generation(chatCompletions),
  '/v1/completions': generation(completions),
  '/v1/embeddings': document(embeddings),
  '/v1/rerank': document(rerank),
  '/v1/tokenize': document(tokenize),
  '/v1/detokenize': document(detokenize),
  '/v1/models': getter('model-repository', ({ catalog }) => jsonAnswer(modelList(catalog))),
};

/** Only where nothing else is served. */
const ALONE_ROUTES: Readonly<Record<string, ApiRoute>> = {
  '/health': getter('health', () => textAnswer(200, '')),
  '/health/ready': getter('health', (services) => textAnswer(isReady(services) ? 200 : 400, '')),
  '/metrics': getter(undefined, ({ metrics }) => textAnswer(200, metrics.render(), metrics.contentType)),
};

const MODEL = /^\/v1\/models\/([^/]+)$/;

function findRoute(path: string, isAlone: boolean): ApiRoute {
  const route = ROUTES[path] ?? (isAlone ? ALONE_ROUTES[path] : undefined);
  if (route !== undefined) return route;
  const id = MODEL.exec(path)?.[1];
  if (id === undefined) {
    throw new ApiError(`Unknown request URL: ${path}`, {
      status: 404,
      type: 'invalid_request_error',
      code: 'unknown_url',
    });
  }
  return getter('model-repository', ({ catalog }) => jsonAnswer(modelById(catalog, id)));
}

function check(services: OpenAiServices, call: RoutedCall, route: ApiRoute): void {
  const type = 'invalid_request_error';
  if (call.method !== route.method) {
    throw new ApiError(`Not allowed to ${call.method} on ${call.path}, use ${route.method}.`, {
      status: 405,
      type,
      code: 'method_not_allowed',
      headers: `Allow: ${route.method}\r\n`,
    });
  }
  const restricted = route.category === undefined ? undefined : services.restrictedApis.get(route.category);
  if (restricted !== undefined && call.header(restricted.header.toLowerCase()) !== restricted.value) {
    throw new ApiError(`This API is restricted, expecting header '${restricted.header}'`, {
      status: 403,
      type,
      code: 'restricted_api',
    });
  }
  const { apiKeys } = services;
  if (route.isKeyed && apiKeys !== undefined && !apiKeys.isAccepted(call.header('authorization'))) {
    throw new ApiError('Incorrect API key provided. It is sent as Authorization: Bearer <key>.', {
      status: 401,
      type,
      code: 'invalid_api_key',
      headers: 'WWW-Authenticate: Bearer\r\n',
    });
  }
}

function isReady(services: OpenAiServices): boolean {
  try {
    return services.isReady();
  } catch {
    return false;
  }
}

function withBody(endpoint: (api: ApiCall) => void | Promise<void>): ApiRoute['begin'] {
  return (services, call, headMs) => {
    const bytesMax = Math.min(services.inputBytesMax, OPENAI_BODY_BYTES_MAX);
    if (call.bodyLength > bytesMax) throw tooLarge(call.bodyLength, bytesMax);
    const encoding = call.header('content-encoding') ?? 'identity';
    if (encoding !== 'identity') throw invalidRequest(`The content encoding '${encoding}' is not supported.`);
    return {
      isBodyKept: true,
      bodyBytesMax: bytesMax,
      onBody: ({ pieces, byteLength }) =>
        guarded(services, call, () => {
          if (byteLength > bytesMax) throw tooLarge(byteLength, bytesMax);
          return endpoint({ services, call, body: parseBody(pieces), headMs });
        }),
    };
  };
}

/** What `act` throws, now or later, is the answer. */
function guarded(services: OpenAiServices, call: RoutedCall, act: () => void | Promise<void>): void {
  const onFailure = (thrown: unknown): void => call.respond(failureOf(services, thrown));
  try {
    act()?.catch(onFailure);
  } catch (thrown) {
    onFailure(thrown);
  }
}

function failureOf(services: OpenAiServices, thrown: unknown): RoutedAnswer {
  const isExpected = thrown instanceof ApiError || thrown instanceof StatusError;
  if (!isExpected) services.logger.error(`OpenAI request failed: ${StatusError.from(thrown).stack}`);
  return answerOf(ApiError.from(thrown));
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

function tooLarge(byteLength: number, bytesMax: number): ApiError {
  return new ApiError(
    `Request size of ${byteLength} bytes exceeds the maximum allowed input size of ${bytesMax} bytes.`,
    { status: 413, type: 'invalid_request_error', code: 'content_too_large' },
  );
}

function textAnswer(status: number, text: string, type = 'text/plain'): RoutedAnswer {
  const body = Buffer.from(text);
  return { status, type, parts: [body], byteLength: body.length };
}
