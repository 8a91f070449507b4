// Requests and answers of the OpenAI API that are too large to be parsed or written on the event loop: they go to the thread for
// JSON, where large-json-tasks.ts runs the same functions. openai-routes.ts and the endpoints call it.

import { setImmediate } from 'node:timers/promises';
import { type JsonThread, toBuffer } from '../json-thread.ts';
import { ApiError, type ApiErrorDetail } from './api-error.ts';
import type { AnswerForm } from './document-answers.ts';
import type { RequestName, RequestOf } from './read-request.ts';
import type { RenderOptions } from './render-chat.ts';

export type OpenAiTask =
  | { readonly kind: 'read'; readonly name: RequestName; readonly body: readonly Uint8Array[] }
  | { readonly kind: 'write'; readonly answer: readonly Uint8Array[]; readonly form: AnswerForm }
  | { readonly kind: 'render'; readonly options: RenderOptions };

/** A refusal crosses as a value: the thread itself knows no errors but StatusErrors. */
export type OpenAiTaskValue =
  | { readonly isRefused: false; readonly value: unknown }
  | { readonly isRefused: true; readonly message: string; readonly detail: ApiErrorDetail };

const TASKS = new URL('./large-json-tasks.js', import.meta.url);

async function run(thread: JsonThread, task: OpenAiTask, moved: readonly Uint8Array[]): Promise<unknown> {
  const outcome = (await thread.run(TASKS, task, moved)) as OpenAiTaskValue;
  if (outcome.isRefused) throw new ApiError(outcome.message, outcome.detail);
  return outcome.value;
}

/** The body is not looked at again. */
export function readOnThread<K extends RequestName>(
  thread: JsonThread,
  name: K,
  body: readonly Uint8Array[],
): Promise<RequestOf<K>> {
  return run(thread, { kind: 'read', name, body }, body) as Promise<RequestOf<K>>;
}

/** Copied in one go; a mebibyte is a fraction of a millisecond. */
const COPY_BYTES = 1024 * 1024;

/** The answer may share a host's frame, or be in the cache, so the thread gets a copy, made piece by piece between other work. */
export async function writeOnThread(
  thread: JsonThread,
  answer: Uint8Array,
  form: AnswerForm,
): Promise<Buffer> {
  const copies: Uint8Array[] = [];
  for (let at = 0; at < answer.length; at += COPY_BYTES) {
    copies.push(new Uint8Array(answer.subarray(at, at + COPY_BYTES)));
    await setImmediate();
  }
  return toBuffer((await run(thread, { kind: 'write', answer: copies, form }, copies)) as Uint8Array);
}

export function renderOnThread(thread: JsonThread, options: RenderOptions): Promise<Uint8Array> {
  return run(thread, { kind: 'render', options }, [options.chat]) as Promise<Uint8Array>;
}
