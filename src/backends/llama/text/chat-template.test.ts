// Real and typical chat templates: the text they give, and what they refuse.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StatusError } from '../../../domain/status.ts';
import { compileChatTemplate } from './chat-template.ts';
import { strftime } from './strftime.ts';

/** As the GGUF of SmolLM2-135M-Instruct has it. */
const SMOLLM2 =
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const LLAMA3 = `{{- bos_token }}
{%- if not date_string is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
  {%- set system_message = messages[0]['content'] | trim %}
  {%- set messages = messages[1:] %}
{%- else %}{%- set system_message = "" %}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: " + date_string + "\\n\\n" + system_message + "<|eot_id|>" }}
{%- if tools is defined and tools is not none %}
  {{- "Respond with a JSON for a function call:\\n" }}
  {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
{%- endif %}
{%- for message in messages %}
  {%- if 'tool_calls' in message %}
    {%- if not message.tool_calls | length == 1 %}{{- raise_exception("This model only supports single tool-calls at once!") }}{%- endif %}
    {%- set tool_call = message.tool_calls[0].function %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n<|python_tag|>{"name": "' + tool_call.name + '", "parameters": ' }}
    {{- tool_call.arguments | tojson }}{{- "}<|eot_id|>" }}
  {%- elif message.role == "tool" or message.role == "ipython" %}
    {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" + message.content + "<|eot_id|>" }}
  {%- else %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}`;

const QWEN = `{%- if tools %}
  {{- '<|im_start|>system\\n' }}
  {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] }}{%- endif %}
  {{- "# Tools\\n<tools>" }}
  {%- for tool in tools %}{{- "\\n" }}{{- tool | tojson }}{%- endfor %}
  {{- "\\n</tools>\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- endif %}
{%- for message in messages %}
  {%- if (message.role == "user") or (message.role == "assistant" and not message.tool_calls) %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
  {%- elif message.role == "assistant" %}
    {{- '<|im_start|>' + message.role }}
    {%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
    {%- for tool_call in message.tool_calls %}
      {%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
      {{- '\\n<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}{{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
  {%- elif message.role == "tool" %}
    {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
    {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
    {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}`;

const MISTRAL = `{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}`;

const compile = (text: string | undefined) =>
  compileChatTemplate({ text, bosToken: '<s>', eosToken: '</s>' });
const user = { role: 'user', content: 'Hi' };
const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'add',
      description: 'Adds.',
      parameters: { type: 'object', properties: { a: { type: 'integer' } } },
    },
  },
];
const CONVERSATION = [
  {
    role: 'user',
    content: [
      { type: 'text', text: '1' },
      { type: 'text', text: '+1?' },
    ],
  },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a": 1, "b": [1.5, null]}' } },
    ],
  },
  { role: 'tool', tool_call_id: 'c1', content: '2' },
];

function refuses(action: () => unknown, text: string | RegExp): void {
  assert.throws(action, (thrown) => {
    assert.ok(thrown instanceof StatusError);
    assert.equal(thrown.code, 'INVALID_ARG');
    if (typeof text === 'string') assert.equal(thrown.message, text);
    else assert.match(thrown.message, text);
    return true;
  });
}

describe('chat templates', () => {
  test('SmolLM2 puts its own system message first where there is none', () => {
    assert.equal(
      compile(SMOLLM2).render({ messages: [user] }),
      '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' +
        '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
    );
    assert.equal(
      compile(SMOLLM2).render({
        messages: [{ role: 'developer', content: 'Be short.' }, user],
        kwargs: { add_generation_prompt: false },
      }),
      '<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n',
    );
  });

  test('without tools tell them in the text', () => {
    const template = compile(SMOLLM2);
    assert.equal(template.hasToolSupport, false);
    const text = template.render({ messages: CONVERSATION, tools: TOOLS });
    assert.match(text, /^<\|im_start\|>system\nYou may call one or more/);
    assert.ok(text.includes(`<tools>\n${JSON.stringify(TOOLS[0])}\n</tools>`));
    assert.ok(
      text.endsWith(
        '<|im_start|>user\n1+1?<|im_end|>\n' +
          '<|im_start|>assistant\n<tool_call>\n{"name":"add","arguments":{"a":1,"b":[1.5,null]}}\n</tool_call><|im_end|>\n' +
          '<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
      ),
    );
    const results = [...CONVERSATION, { role: 'tool', tool_call_id: 'c2', content: '3' }];
    const parallel = template.render({
      messages: [{ role: 'system', content: 'S' }, ...results],
      tools: TOOLS,
    });
    assert.match(parallel, /^<\|im_start\|>system\nS\n\nYou may call/);
    assert.match(
      parallel,
      /user\n<tool_response>\n2\n<\/tool_response>\n<tool_response>\n3\n<\/tool_response><\|im_end\|>/,
    );
  });

  test('in the style of Qwen give tools, calls and results their places', () => {
    const template = compile(QWEN);
    assert.equal(template.hasToolSupport, true);
    assert.equal(
      template.render({ messages: CONVERSATION, tools: TOOLS, kwargs: { enable_thinking: false } }),
      '<|im_start|>system\n# Tools\n<tools>\n{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}\n' +
        '</tools>\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n' +
        '<|im_start|>user\n1+1?<|im_end|>\n' +
        '<|im_start|>assistant\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": [1.5, null]}}\n</tool_call><|im_end|>\n' +
        '<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
    );
    assert.doesNotMatch(template.render({ messages: [user], tools: [] }), /# Tools/);
  });

  test('in the style of Llama 3 write the day and refuse with their own words', () => {
    const now = new Date(2026, 6, 4, 12);
    const template = compile(LLAMA3);
    assert.equal(
      template.render({ messages: [user], now }),
      '<s><|start_header_id|>system<|end_header_id|>\n\nToday Date: 04 Jul 2026\n\n<|eot_id|>' +
        '<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    );
    const withCall = template.render({ messages: CONVERSATION, now });
    assert.ok(
      withCall.includes('<|python_tag|>{"name": "add", "parameters": {"a": 1, "b": [1.5, null]}}<|eot_id|>'),
    );
    const call = CONVERSATION[1]!.tool_calls![0];
    refuses(
      () => template.render({ messages: [user, { role: 'assistant', tool_calls: [call, call] }] }),
      'This model only supports single tool-calls at once!',
    );
  });

  test('in the style of Mistral insist on turns', () => {
    const template = compile(MISTRAL);
    const messages = [user, { role: 'assistant', content: 'Hello.' }, user];
    assert.equal(template.render({ messages }), '<s>[INST] Hi [/INST]Hello.</s>[INST] Hi [/INST]');
    refuses(
      () => template.render({ messages: [user, user] }),
      'Conversation roles must alternate user/assistant/user/assistant/...',
    );
  });

  test('a template of its own for tools is used with tools', () => {
    const template = compileChatTemplate({
      text: 'plain {{ messages[0].content }}',
      toolUseText: 'with {{ tools | length }}',
      bosToken: '',
      eosToken: '',
    });
    assert.equal(template.render({ messages: [user] }), 'plain Hi');
    assert.equal(template.render({ messages: [user], tools: TOOLS }), 'with 1');
  });

  test('a model without template speaks in lines', () => {
    const template = compile(undefined);
    assert.equal(
      template.render({ messages: [{ role: 'system', content: 'Be kind.' }, user] }),
      'Be kind.\n\nUser: Hi\nAssistant:',
    );
    assert.deepEqual(template.stopStrings, ['\nUser:']);
  });

  test('that are broken are refused, at load or at the request', () => {
    refuses(() => compile('{% for x in %}'), /^the chat template is not valid: /);
    refuses(
      () => compile('{{ messages[0].content + none }}').render({ messages: [user] }),
      /could not be rendered/,
    );
    refuses(() => compile('{{ range(10000000) }}').render({ messages: [user] }), /range is too long/);
  });

  test('cannot be told what is ours, but anything else', () => {
    const template = compile('{{ messages | length }}{{ tools is defined }}{{ extra.a }}{{ true }}');
    const kwargs = { messages: [], tools: [1], extra: { a: 5 }, true: false };
    assert.equal(template.render({ messages: [user], kwargs }), '1false5true');
    refuses(() => template.render({ messages: [user], kwargs: 5 }), 'chat_template_kwargs must be an object');
  });

  test('render a long conversation', () => {
    const long = 'x'.repeat(1_000_000);
    const messages = Array.from({ length: 200 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: 'y'.repeat(1000),
    }));
    const text = compile(SMOLLM2).render({ messages: [...messages, { role: 'user', content: long }] });
    assert.ok(text.length > 1_200_000 && text.includes(long));
  });
});

test('messages that are wrong are refused by their place', () => {
  const render = (messages: unknown) => () => compile(SMOLLM2).render({ messages });
  refuses(render([]), 'messages must be a list with elements');
  refuses(render([{ role: 'robot', content: 'a' }]), /^messages\[0\]\.role must be one of system, /);
  refuses(render([{ role: 'user' }]), 'messages[0].content must be a string or a list of parts');
  refuses(
    render([{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }]),
    'only text message is supported, but got image_url',
  );
  const wrongCall = { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '{' } }] };
  refuses(render([user, wrongCall]), 'messages[1].tool_calls[0].function.arguments is not valid JSON');
  refuses(
    render([user, { role: 'assistant', tool_calls: [{}] }]),
    'messages[1].tool_calls[0].function must have a name',
  );
});

test('dates are written as Python writes them', () => {
  const date = new Date(2026, 0, 5, 15, 4, 9);
  assert.equal(
    strftime(date, '%A, %-d %B %Y %H:%M:%S %I%p %j %y %a %b %m/%d 100%% %Q'),
    'Monday, 5 January 2026 15:04:09 03PM 005 26 Mon Jan 01/05 100% %Q',
  );
});
