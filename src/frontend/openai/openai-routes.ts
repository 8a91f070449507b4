// The paths of the OpenAI API: /v1 beside the inference API, and on a port of its own with health and metrics. Checks in this
// order: path, method, restricted API, API key, size, JSON; then the endpoint answers. Every error leaves in OpenAI's form.

import { JSON_INLINE_BYTES_MAX, OPENAI_BODY_BYTES_MAX } from '../../domain/limits.ts';
import { StatusError } from '../../domain/status.ts';
import type { HttpRoutes, RoutedAnswer, RoutedCall, RoutePlan } from '../http-routes.ts';
import type { RestrictedCategory } from '../services.ts';
import type { ApiCall } from './api-call.ts';
import { ApiError, answerOf, invalidRequest, jsonAnswer } from './api-error.ts';
import { chatCompletions } from './chat-endpoint.ts';
import { completions } from './completion-endpoint.ts';
import { answerDocument } from './document-endpoints.ts';
import { readOnThread } from './large-json.ts';
import { modelById, modelList } from './models-endpoint.ts';
import { type RequestName, type RequestOf, readRequest } from './read-request.ts';
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

/** Answers by itself. */
type Endpoint<K extends RequestName> = (api: ApiCall, request: RequestOf<K>) => void | Promise<void>;

function post<K extends RequestName>(name: K, endpoint: Endpoint<K>): ApiRoute {
  return { method: 'POST', category: 'inference', isKeyed: true, begin: withBody(name, endpoint) };
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
  '/v1/chat/completions': post('chat', chatCompletions),
  '/v1/completions': post('completion', completions),
  '/v1/embeddings': post('embeddings', answerDocument),
  '/v1/rerank': post('rerank', answerDocument),
  '/v1/tokenize': post('tokenize', answerDocument),
  '/v1/detokenize': post('detokenize', answerDocument),
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

function withBody<K extends RequestName>(name: K, endpoint: Endpoint<K>): ApiRoute['begin'] {
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
          const api: ApiCall = { services, call, headMs };
          if (byteLength <= JSON_INLINE_BYTES_MAX) return endpoint(api, readRequest(name, pieces));
          return readOnThread(services.jsonThread, name, pieces).then((request) => endpoint(api, request));
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
