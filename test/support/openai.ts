// A server with the text models of test/e2e/openai_models, for the tests of the OpenAI API, and its streams as data.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { request } from 'node:http';
import { inRoot } from './paths.ts';
import { createRepository } from './repository.ts';
import { freePorts, type RunningServer, startServer } from './server.ts';

export interface OpenAiServer {
  readonly server: RunningServer;
  /** The API beside the inference API, and alone. */
  readonly httpUrl: string;
  readonly aloneUrl: string;
  close(): Promise<void>;
}

export async function startOpenAiServer(args: readonly string[] = []): Promise<OpenAiServer> {
  const repository = createRepository();
  cpSync(inRoot('test', 'e2e', 'openai_models'), repository.path, { recursive: true });
  const [port] = await freePorts(1);
  const server = await startServer({
    repository: repository.path,
    args: [`--openai-port=${port}`, '--openai-address=127.0.0.1', ...args],
    env: { NEREID_PYTHON: process.env.NEREID_TEST_PYTHON ?? 'python3' },
  });
  return {
    server,
    httpUrl: server.httpUrl,
    aloneUrl: `http://127.0.0.1:${port}`,
    close: async () => {
      await server.stop();
      repository.remove();
    },
  };
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of an answer that is JSON. */
  readonly json: Record<string, unknown> & { readonly error?: ApiErrorBody };
}

export interface ApiErrorBody {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** A body that is no string is sent as JSON; without one the method is GET. */
export async function callApi(
  url: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ApiAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(
    url,
    body === undefined ? { headers } : { method: 'POST', body: text, headers },
  );
  const received = await response.text();
  const isJson = response.headers.get('content-type') === 'application/json';
  const json = isJson ? (JSON.parse(received) as ApiAnswer['json']) : {};
  return { status: response.status, headers: response.headers, text: received, json };
}

export interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly choices: {
    readonly index: number;
    readonly text?: string;
    readonly delta: {
      readonly role?: string;
      readonly content?: string;
      readonly tool_calls?: {
        index: number;
        id?: string;
        type?: string;
        function: { name?: string; arguments: string };
      }[];
    };
    readonly logprobs: unknown;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
  readonly timings?: unknown;
  readonly error?: ApiErrorBody;
}

export interface EventStreamAnswer {
  readonly chunks: readonly Chunk[];
  readonly isDone: boolean;
}

export async function streamApi(url: string, body: object): Promise<EventStreamAnswer> {
  const answer = await callApi(url, { ...body, stream: true });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const events = answer.text.split('\n\n');
  assert.equal(events.pop(), '', 'an event ends with an empty line');
  const isDone = events.at(-1) === 'data: [DONE]';
  const chunks = events.slice(0, isDone ? -1 : undefined).map((event) => {
    assert.ok(event.startsWith('data: '), event);
    return JSON.parse(event.slice('data: '.length)) as Chunk;
  });
  return { chunks, isDone };
}

/** The texts of a choice, joined. */
export function textOf(chunks: readonly Chunk[], index = 0): string {
  const choices = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
  return choices.map(({ text, delta }) => text ?? delta.content ?? '').join('');
}

/** Sends a request, calls back at the first bytes of the answer and goes away. */
export function abandonAfterFirstByte(url: string, body: object): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST', agent: false }, (response) => {
      response.once('data', () => {
        outgoing.destroy();
        resolve();
      });
      response.once('error', () => {});
    });
    outgoing.once('error', reject);
    outgoing.end(JSON.stringify(body));
  });
}
