import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { ServedModel } from '../../core/model/served-model.ts';
import { ApiError } from './api-error.ts';
import { renderPrompt } from './chat-prompt.ts';
import { prepareChat } from './prepare-request.ts';
import type { JsonObject } from './read-fields.ts';
import type { OpenAiServices } from './services.ts';
import type { TextModel } from './text-model.ts';

const MESSAGES = [
  { role: 'system', content: 'be short' },
  { role: 'user', content: 'hi' },
];
const ADD = { type: 'function', function: { name: 'add' } };

describe('the prompt of a chat', () => {
  let repository: string;
  before(() => {
    repository = mkdtempSync(join(tmpdir(), 'nereid-prompt-'));
    mkdirSync(join(repository, 'm'));
    writeFileSync(join(repository, 'm', 'chat.jinja'), '{{ bos_token }}{{ messages | length }}{{ mood }}');
    writeFileSync(join(repository, 'secret.jinja'), 'secret');
  });
  after(() => rmSync(repository, { recursive: true }));

  /** With these parameters in the config; only what a prompt is made of. */
  async function render(
    parameters: Readonly<Record<string, string>>,
    body: JsonObject = {},
  ): Promise<string> {
    const config = {
      parameters: Object.fromEntries(
        Object.entries(parameters).map(([key, string_value]) => [key, { string_value }]),
      ),
    };
    const served = { name: 'm', config } as unknown as ServedModel;
    const services = { repositoryPaths: [join(repository, 'none'), repository] } as unknown as OpenAiServices;
    const request = prepareChat({ model: 'm', messages: MESSAGES, ...body });
    return String(await renderPrompt(services, { served } as TextModel, request));
  }

  const paramOf = (param: string) => (error: unknown) =>
    error instanceof ApiError && error.detail.param === param;

  test('without a template: a line for each message', async () => {
    assert.equal(await render({}), 'system: be short\nuser: hi\nassistant:');
  });

  test('from a template in the config, or in a file of the model', async () => {
    const text = '{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ eos_token }}';
    assert.equal(await render({ chat_template: text, eos_token: '</s>' }), '<system>be short<user>hi</s>');
    const options = { chat_template_kwargs: { mood: 'calm' } };
    assert.equal(await render({ chat_template: 'chat.jinja', bos_token: '<s>' }, options), '<s>2calm');
  });

  test('a template sees the tools unless none are wanted', async () => {
    const text = '{% for tool in tools or [] %}{{ tool.function.name }}{% endfor %}.';
    assert.equal(await render({ chat_template: text }, { tools: [ADD] }), 'add.');
    assert.equal(await render({ chat_template: text }, { tools: [ADD], tool_choice: 'none' }), '.');
  });

  test('what cannot be done is refused', async () => {
    await assert.rejects(render({}, { tools: [ADD] }), paramOf('tools'));
    const forced = { tools: [ADD], tool_choice: 'required' };
    await assert.rejects(render({ chat_template: '{{ tools }}' }, forced), paramOf('tool_choice'));
    await assert.rejects(render({ chat_template: "{{ raise_exception('no') }}" }), paramOf('messages'));
  });

  test('a template that is wrong, missing or outside of the model is a failure of the server', async () => {
    await assert.rejects(render({ chat_template: '{% if %}' }), /the chat template of model 'm' is wrong/);
    await assert.rejects(render({ chat_template: 'no.jinja' }), /'no.jinja' of model 'm' cannot be read/);
    await assert.rejects(render({ chat_template: '../secret.jinja' }), /cannot be read/);
  });
});
