// The messages of a chat as one prompt, for models that do not render chats themselves. The parameter `chat_template` of the
// model's config is a Jinja template or the name of a file with one in the model's directory; without it the messages are
// joined as `role: content` lines, and the last line is `assistant:`.

import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Template } from '@huggingface/jinja';
import type { ServedModel } from '../../core/model/served-model.ts';
import { internal, StatusError } from '../../domain/status.ts';
import { invalidField } from './api-error.ts';
import type { ChatRequest } from './chat-request.ts';
import type { JsonObject } from './read-fields.ts';
import type { OpenAiServices } from './services.ts';
import type { TextModel } from './text-model.ts';

const templates = new WeakMap<ServedModel, Promise<Template>>();

/** Refuses what a model that is not told of tools in its own way cannot do. */
export async function renderPrompt(
  services: OpenAiServices,
  model: TextModel,
  request: ChatRequest,
): Promise<string> {
  const { toolChoice, tools } = request;
  if (toolChoice === 'required' || typeof toolChoice === 'object') {
    throw invalidField('tool_choice', `The model '${request.model}' cannot be made to call a tool.`);
  }
  const template = templateOf(services, model.served);
  if (template === undefined) {
    if (toolChoice !== 'none') {
      throw invalidField(
        'tools',
        `The model '${request.model}' has no chat template that tells it of tools.`,
      );
    }
    return joinMessages(request.messages);
  }
  const { bos_token, eos_token } = model.served.config.parameters;
  return render(await template, {
    ...request.templateOptions,
    messages: request.messages.map(withParsedArguments),
    ...(toolChoice === 'none' ? {} : { tools }),
    add_generation_prompt: true,
    bos_token: bos_token?.string_value ?? '',
    eos_token: eos_token?.string_value ?? '',
  });
}

function joinMessages(messages: readonly JsonObject[]): string {
  const lines = messages.map(
    ({ role, content }) => `${String(role)}: ${typeof content === 'string' ? content : ''}\n`,
  );
  return `${lines.join('')}assistant:`;
}

/** Templates refuse conversations they cannot write, in their own words. */
function render(template: Template, values: Record<string, unknown>): string {
  try {
    return template.render(values);
  } catch (thrown) {
    throw invalidField('messages', `the chat template: ${StatusError.from(thrown).message}`);
  }
}

/** Templates write arguments as objects, clients send them as text. */
function withParsedArguments(message: JsonObject): JsonObject {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  const parsed = calls.map((call: JsonObject & { function: { arguments: string } }) => ({
    ...call,
    function: { ...call.function, arguments: parseArguments(call.function.arguments) },
  }));
  return { ...message, tool_calls: parsed };
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function templateOf(services: OpenAiServices, model: ServedModel): Promise<Template> | undefined {
  const text = model.config.parameters.chat_template?.string_value;
  if (text === undefined || text === '') return undefined;
  let template = templates.get(model);
  if (template === undefined) {
    template = readTemplate(services.repositoryPaths, { model: model.name, text });
    templates.set(model, template);
    // A file that is put in its place later is found then.
    template.catch(() => templates.delete(model));
  }
  return template;
}

async function readTemplate(
  repositoryPaths: readonly string[],
  { model, text }: { readonly model: string; readonly text: string },
): Promise<Template> {
  const isInline = text.includes('{{') || text.includes('{%');
  const source = isInline ? text : await readTemplateFile(repositoryPaths, model, text);
  try {
    return new Template(source);
  } catch (thrown) {
    throw internal(`the chat template of model '${model}' is wrong: ${StatusError.from(thrown).message}`);
  }
}

async function readTemplateFile(
  repositoryPaths: readonly string[],
  model: string,
  file: string,
): Promise<string> {
  for (const path of repositoryPaths) {
    const directory = join(path, model);
    const found = join(directory, file);
    if (relative(directory, found).startsWith('..')) break;
    const text = await readFile(found, 'utf8').catch(() => undefined);
    if (text !== undefined) return text;
  }
  throw internal(`the chat template '${file}' of model '${model}' cannot be read`);
}
