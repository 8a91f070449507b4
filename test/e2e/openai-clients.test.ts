// The OpenAI API as its own clients use it: the official packages for Node and for Python, and curl. The package for Python is
// fetched once into the user's cache; where it cannot be had its tests are skipped with pip's reason.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { type OpenAiServer, startOpenAiServer } from '../support/openai.ts';
import { OPENAI_PACKAGES } from '../support/openai-packages.ts';
import { findPackages } from '../support/pip-packages.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';

const SAY = [{ role: 'user' as const, content: 'say: hello big world' }];
const TOOLS = [{ type: 'function' as const, function: { name: 'add', parameters: { type: 'object' } } }];
const CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';

const packages =
  pythonSkip === false ? await findPackages('openai', OPENAI_PACKAGES) : { reason: pythonSkip };

describe('clients of the OpenAI API', { skip: pythonSkip }, () => {
  let api: OpenAiServer;
  before(async () => {
    api = await startOpenAiServer();
  });
  after(async () => {
    await api?.close();
  });

  describe('openai for Node', () => {
    let client: OpenAI;
    before(() => {
      client = new OpenAI({ baseURL: `${api.httpUrl}/v1`, apiKey: 'sk-test', maxRetries: 0 });
    });

    test('chat', async () => {
      const answer = await client.chat.completions.create({ model: 'talker', messages: SAY, max_tokens: 2 });
      assert.equal(answer.choices[0]?.message.content, 'hello big');
      assert.equal(answer.choices[0]?.finish_reason, 'length');
      assert.equal(answer.usage?.completion_tokens, 2);
    });

    test('a stream', async () => {
      const stream = await client.chat.completions.create({
        model: 'talker',
        messages: SAY,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      let tokens: number | undefined;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        tokens = chunk.usage?.completion_tokens;
      }
      assert.deepEqual([text, tokens], ['hello big world', 3]);
    });

    test('tools, put together from a stream', async () => {
      const messages = [{ role: 'user' as const, content: `say: ${CALL} ${CALL}` }];
      const runner = client.chat.completions.stream({ model: 'templated', messages, tools: TOOLS });
      const final = await runner.finalChatCompletion();
      const [choice] = final.choices;
      assert.equal(choice?.finish_reason, 'tool_calls');
      assert.deepEqual(
        choice?.message.tool_calls?.map((call) => (call.type === 'function' ? call.function.arguments : '')),
        ['{"a": 1}', '{"a": 1}'],
      );
    });

    test('completions and embeddings', async () => {
      const answer = await client.completions.create({ model: 'talker', prompt: ['say: a', 'say: b'] });
      assert.deepEqual(
        answer.choices.map(({ text }) => text),
        ['a', 'b'],
      );
      const embedded = await client.embeddings.create({ model: 'contract', input: ['abc', 'de'] });
      assert.deepEqual(
        embedded.data.map(({ embedding }) => [...embedding]),
        [
          [3, 0.5],
          [2, 0.5],
        ],
      );
    });

    test('models and errors', async () => {
      const names: string[] = [];
      for await (const model of client.models.list()) names.push(model.id);
      assert.ok(names.includes('contract:pirate'));
      await assert.rejects(
        client.chat.completions.create({ model: 'no', messages: SAY }),
        (error: unknown) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found',
      );
      await assert.rejects(
        client.chat.completions.create({ model: 'talker', messages: SAY, top_p: 2 }),
        (error: unknown) => error instanceof OpenAI.BadRequestError && error.param === 'top_p',
      );
    });
  });

  test('curl', async () => {
    const body = JSON.stringify({ model: 'talker', messages: SAY, stream: true });
    const args = ['-sS', '-N', '--max-time', '20', `${api.aloneUrl}/v1/chat/completions`, '-d', body];
    const { stdout } = await promisify(execFile)('curl', args);
    assert.equal(stdout.match(/^data: /gm)?.length, 6);
    assert.ok(stdout.endsWith('data: [DONE]\n\n'));
  });

  describe('openai for Python', { skip: 'reason' in packages ? packages.reason : false }, () => {
    let output = '';
    before(async () => {
      const env = 'folder' in packages ? { PYTHONPATH: packages.folder } : {};
      const result = await runPython({ script: 'e2e/openai_client.py', args: [api.httpUrl], env });
      output = result.output;
    });
    testChecks('e2e/openai_client.py', () => output);
  });
});
