// Tool formats by template, and grammars that let valid calls through and nothing else.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMatcher } from './gbnf-matcher.ts';
import {
  parseToolChoice,
  parseTools,
  type ToolFormat,
  toolFormatOf,
  toolGrammar,
  toolMarkers,
} from './tool-format.ts';

const TOOLS = parseTools([
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Weather of a city.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' }, unit: { enum: ['C', 'F'] } },
        required: ['city'],
      },
    },
  },
  { type: 'function', function: { name: 'now' } },
]);
const WEATHER = '{"name": "get_weather", "arguments": {"city": "Ulm", "unit": "C"}}';
const NOW = '{"name": "now", "arguments": {}}';

function matcherOf(choice: unknown, options: { format?: ToolFormat; isParallel?: boolean } = {}) {
  const toolChoice = parseToolChoice(choice, TOOLS);
  const { format = 'hermes', isParallel = true } = options;
  return createMatcher(toolGrammar({ tools: TOOLS, toolChoice, isParallel, format })!);
}

test('the format is told by the template', () => {
  assert.equal(toolFormatOf(undefined), 'hermes');
  assert.equal(toolFormatOf('{{ messages }}'), 'hermes');
  assert.equal(toolFormatOf('… <tool_call> …'), 'hermes');
  assert.equal(toolFormatOf('{{ "[TOOL_CALLS]" }}'), 'mistral');
  assert.equal(toolFormatOf('{{ "<|python_tag|>" }}'), 'llama3');
  assert.deepEqual(toolMarkers('mistral'), ['[TOOL_CALLS]']);
});

describe('tool grammars', () => {
  test('leave the model free under auto and none', () => {
    for (const toolChoice of ['auto', 'none'] as const) {
      assert.equal(toolGrammar({ tools: TOOLS, toolChoice, isParallel: true, format: 'hermes' }), undefined);
    }
  });

  test('of hermes allow one or several calls', () => {
    const matches = matcherOf('required');
    assert.ok(matches(`<tool_call>${WEATHER}</tool_call>`));
    assert.ok(matches(`<tool_call>\n${WEATHER}\n</tool_call>\n<tool_call>\n${NOW}\n</tool_call>`));
    assert.ok(matches(`<tool_call>${JSON.stringify(JSON.parse(WEATHER))}</tool_call>`), 'compact');
    assert.ok(!matches(`<tool_call>${WEATHER}</tool_call> and text`));
    assert.ok(!matches(WEATHER) && !matches(''));
    assert.ok(
      !matches('<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>'),
      'city is required',
    );
    assert.ok(!matches('<tool_call>{"name": "now", "arguments": {"city": "Ulm"}}</tool_call>'));
    assert.ok(!matches('<tool_call>{"name": "other", "arguments": {}}</tool_call>'));
    const once = `<tool_call>${NOW}</tool_call>`;
    assert.ok(matches(once.repeat(16)) && !matches(once.repeat(17)));
  });

  test('without parallel calls, or with a named function, allow one', () => {
    const single = matcherOf('required', { isParallel: false });
    const once = `<tool_call>${NOW}</tool_call>`;
    assert.ok(single(once) && !single(once + once));
    const named = matcherOf({ type: 'function', function: { name: 'now' } });
    assert.ok(named(once) && !named(once + once) && !named(`<tool_call>${WEATHER}</tool_call>`));
  });

  test('of mistral and llama3 have their own shape', () => {
    const mistral = matcherOf('required', { format: 'mistral' });
    assert.ok(mistral(`[TOOL_CALLS] [${WEATHER}, ${NOW}]`) && mistral(`[TOOL_CALLS][${NOW}]`));
    assert.ok(!mistral(`[${NOW}]`) && !mistral(`[TOOL_CALLS][${NOW}${NOW}]`));
    const llama3 = matcherOf('required', { format: 'llama3' });
    const asParameters = (text: string) => text.replace('"arguments"', '"parameters"');
    assert.ok(llama3(`${asParameters(WEATHER)}; ${asParameters(NOW)}`));
    assert.ok(!llama3(NOW));
  });

  test('name the function whose parameters cannot be kept', () => {
    const tools = parseTools([{ type: 'function', function: { name: 'f', parameters: { not: {} } } }]);
    assert.throws(
      () => toolGrammar({ tools, toolChoice: 'required', isParallel: true, format: 'hermes' }),
      /^StatusError: the parameters of function 'f': JSON schema keyword 'not' is not supported$/,
    );
  });

  test('take parameters for an object where the type is missing', () => {
    const tools = parseTools([{ type: 'function', function: { name: 'f', parameters: {} } }]);
    const grammar = toolGrammar({ tools, toolChoice: 'required', isParallel: false, format: 'hermes' })!;
    const matches = createMatcher(grammar);
    assert.ok(matches('<tool_call>{"name":"f","arguments":{"x":1}}</tool_call>'));
    assert.ok(!matches('<tool_call>{"name":"f","arguments":5}</tool_call>'));
  });
});

test('tools and choices that are wrong are refused', () => {
  const tool = { type: 'function', function: { name: 'f' } };
  assert.throws(() => parseTools({}), /tools must be a list/);
  assert.throws(() => parseTools([{ type: 'x' }]), /tools\[0\] must have the type 'function'/);
  assert.throws(() => parseTools([{ type: 'function', function: {} }]), /tools\[0\]\.function\.name/);
  assert.throws(() => parseTools([tool, tool]), /two functions of the name 'f'/);
  assert.throws(() => parseToolChoice('required', []), /'required' needs tools/);
  assert.throws(() => parseToolChoice('sometimes', TOOLS), /tool_choice must be/);
  assert.throws(() => parseToolChoice(tool, TOOLS), /Tool 'f' has not been passed in `tools`\./);
  assert.equal(parseToolChoice(undefined, TOOLS), 'auto');
  assert.equal(parseToolChoice(undefined, []), 'none');
});
