// The messages of a chat as one prompt, for models that do not render chats themselves. The parameter `chat_template` of the
// model's config is a Jinja template or the name of a file with one in the model's directory; without it the messages are
// joined as `role: content` lines, and the last line is `assistant:`.

import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { ServedModel } from '../../core/model/served-model.ts';
import { JSON_INLINE_BYTES_MAX } from '../../domain/limits.ts';
import { internal } from '../../domain/status.ts';
import { invalidField } from './api-error.ts';
import { renderOnThread } from './large-json.ts';
import type { PreparedChat } from './prepare-request.ts';
import { type RenderOptions, renderChat } from './render-chat.ts';
import type { OpenAiServices } from './services.ts';
import type { TextModel } from './text-model.ts';

const templates = new WeakMap<ServedModel, Promise<string>>();

/** In UTF-8. Refuses what a model that is not told of tools in its own way cannot do. */
export async function renderPrompt(
  services: OpenAiServices,
  model: TextModel,
  request: PreparedChat,
): Promise<Uint8Array> {
  const { toolChoice, chat } = request;
  if (toolChoice === 'required' || typeof toolChoice === 'object') {
    throw invalidField('tool_choice', `The model '${request.model}' cannot be made to call a tool.`);
  }
  const template = await templateOf(services, model.served);
  if (template === undefined && toolChoice !== 'none') {
    throw invalidField('tools', `The model '${request.model}' has no chat template that tells it of tools.`);
  }
  const { bos_token, eos_token } = model.served.config.parameters;
  const options: RenderOptions = {
    model: model.served.name,
    template,
    chat,
    beginText: bos_token?.string_value ?? '',
    endText: eos_token?.string_value ?? '',
  };
  return chat.length <= JSON_INLINE_BYTES_MAX
    ? Buffer.from(renderChat(options))
    : renderOnThread(services.jsonThread, options);
}

function templateOf(services: OpenAiServices, model: ServedModel): Promise<string> | undefined {
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
): Promise<string> {
  const isInline = text.includes('{{') || text.includes('{%');
  if (isInline) return text;
  for (const path of repositoryPaths) {
    const directory = join(path, model);
    const found = join(directory, text);
    if (relative(directory, found).startsWith('..')) break;
    const source = await readFile(found, 'utf8').catch(() => undefined);
    if (source !== undefined) return source;
  }
  throw internal(`the chat template '${text}' of model '${model}' cannot be read`);
}
