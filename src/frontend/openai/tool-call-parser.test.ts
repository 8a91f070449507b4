import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OPENAI_TOOL_CALL_CHARS_MAX } from '../../domain/limits.ts';
import { ToolCallParser } from './tool-call-parser.ts';

interface Result {
  content: string;
  calls: { name: string; arguments: string }[];
  isBroken: boolean;
}

/** The text in pieces of `chars` characters. */
function parse(text: string, chars = Infinity, callsMax = Infinity): Result {
  const parser = new ToolCallParser({ toolNames: ['add', 'get_time'], callsMax });
  const result: Result = { content: '', calls: [], isBroken: false };
  const ids = new Set<string>();
  const size = Math.min(chars, text.length);
  for (let at = 0; at < text.length; at += size) {
    const { content, calls } = parser.push(text.slice(at, at + size));
    result.content += content;
    for (const call of calls) {
      if (call.name === undefined) assert.ok(result.calls[call.index], 'arguments after their name');
      else {
        assert.equal(call.index, result.calls.length);
        assert.match(call.id ?? '', /^call_[0-9a-f]{24}$/);
        ids.add(call.id!);
        result.calls.push({ name: call.name, arguments: '' });
      }
      result.calls[call.index]!.arguments += call.arguments;
    }
  }
  const { content, calls } = parser.end();
  assert.deepEqual(calls, []);
  result.content += content;
  result.isBroken = parser.isBroken;
  assert.equal(ids.size, result.calls.length);
  assert.equal(parser.callCount, result.calls.length);
  return result;
}

const ADD = '{"name": "add", "arguments": {"a": 1, "b": "x\\"}]{"}}';
const ADD_ARGUMENTS = '{"a": 1, "b": "x\\"}]{"}';
const TIME = '{"name":"get_time","parameters":{}}';
const add = { name: 'add', arguments: ADD_ARGUMENTS };
const time = { name: 'get_time', arguments: '{}' };

const CASES: readonly [string, string, string, { name: string; arguments: string }[]][] = [
  ['plain text', 'Hello <world> [1] {2}', 'Hello <world> [1] {2}', []],
  ['one call', `<tool_call>\n${ADD}\n</tool_call>`, '', [add]],
  ['calls side by side', `<tool_call>${ADD}</tool_call>\n<tool_call>${TIME}</tool_call>\n`, '', [add, time]],
  ['text before a call', `I look.\n<tool_call>${ADD}</tool_call>`, 'I look.\n', [add]],
  ['text after a call', `<tool_call>${ADD}</tool_call>\n\nDone <b>.`, 'Done <b>.', [add]],
  ['a call without its end', `<tool_call>${ADD}`, '', [add]],
  [
    'a tool that was not offered, marked',
    '<tool_call>{"name":"other"}</tool_call>',
    '',
    [{ name: 'other', arguments: '{}' }],
  ],
  ['Mistral', `[TOOL_CALLS] [${ADD}, ${TIME}]`, '', [add, time]],
  ['Mistral, text before', `So: [TOOL_CALLS][${ADD}]`, 'So: ', [add]],
  ['Llama 3', `<|python_tag|>${ADD}; ${TIME}`, '', [add, time]],
  ['Llama 3, bare', `\n ${ADD}; ${TIME}`, '', [add, time]],
  ['a bare list', `[${ADD}, ${TIME}]`, '', [add, time]],
  [
    'arguments before the name',
    '{"arguments": {"a":1}, "name": "add"}',
    '',
    [{ name: 'add', arguments: '{"a":1}' }],
  ],
  [
    'arguments as a string',
    '{"name":"add","arguments":"{\\"a\\": 1}"}',
    '',
    [{ name: 'add', arguments: '{"a": 1}' }],
  ],
  ['no arguments', '{"name":"add"}', '', [{ name: 'add', arguments: '{}' }]],
  [
    'arguments null, other keys',
    '{"type":"function","id":5,"name":"add","arguments":null}',
    '',
    [{ name: 'add', arguments: '{}' }],
  ],
  ['a bare object that is no call', '{"answer": {"name": "add"}}', '{"answer": {"name": "add"}}', []],
  ['a bare call of no tool', '{"name":"Bob","arguments":{}}', '{"name":"Bob","arguments":{}}', []],
  ['a bare list of numbers', ' [1, 2]', ' [1, 2]', []],
  ['text that begins like a marker', '[TOOLS] are here', '[TOOLS] are here', []],
  ['text that ends like a marker', 'a <tool_ca', 'a <tool_ca', []],
  ['a marker without a call', '<tool_call>call me</tool_call>', '<tool_call>call me</tool_call>', []],
  ['python after the tag', '<|python_tag|>print(1)', '<|python_tag|>print(1)', []],
  ['a second chance', `<tool_call>x <tool_call>${ADD}</tool_call>`, '<tool_call>x ', [add]],
  [
    'bad JSON before the name',
    '<tool_call>{"name": add}</tool_call>',
    '<tool_call>{"name": add}</tool_call>',
    [],
  ],
  ['only blanks', ' \n', ' \n', []],
  ['nothing', '', '', []],
];

describe('tool calls', () => {
  for (const [name, text, content, calls] of CASES) {
    test(`${name}, whole and in pieces of any size`, () => {
      for (const chars of [Infinity, 1, 2, 3, 7, 16]) {
        const result = parse(text, chars);
        assert.deepEqual(result, { content, calls, isBroken: false }, `pieces of ${chars}`);
      }
    });
  }

  test('a call that breaks is content, or told when its name has left', () => {
    for (const text of [
      '<tool_call>{"name":"add","arguments":{"a":}}</tool_call> and on',
      '{"name":"add",} and on',
    ]) {
      assert.deepEqual(parse(text), { content: text, calls: [], isBroken: false });
      const result = parse(text, 1);
      assert.equal(result.isBroken, true);
      assert.equal(result.calls.length, 1);
      assert.match(result.content, /and on$/);
    }
  });

  test('a call that is cut keeps what came', () => {
    const result = parse('<tool_call>{"name":"add","arguments":{"a": 1, "b', 4);
    assert.deepEqual(result, {
      content: '',
      calls: [{ name: 'add', arguments: '{"a": 1, "b' }],
      isBroken: false,
    });
  });

  test('arguments come in fragments, the name once', () => {
    const parser = new ToolCallParser({ toolNames: ['add'], callsMax: 9 });
    assert.deepEqual(parser.push('<tool_call>{"name":"add').calls, []);
    const [start] = parser.push('","arguments":{"a"').calls;
    assert.deepEqual([start?.index, start?.name, start?.arguments], [0, 'add', '{"a"']);
    assert.deepEqual(parser.push(':1').calls, [{ index: 0, arguments: ':1' }]);
    assert.deepEqual(parser.push('}}').calls, [{ index: 0, arguments: '}' }]);
  });

  test('with one call allowed the others are dropped', () => {
    const text = `<tool_call>${ADD}</tool_call>\n<tool_call>${TIME}</tool_call>`;
    for (const chars of [Infinity, 1]) assert.deepEqual(parse(text, chars, 1).calls, [add]);
  });

  test('what is held back is bounded', () => {
    const long = `{"arguments":{"a":"${'x'.repeat(OPENAI_TOOL_CALL_CHARS_MAX)}`;
    const parser = new ToolCallParser({ toolNames: ['add'], callsMax: 9 });
    let content = '';
    for (let at = 0; at < long.length; at += 1000) content += parser.push(long.slice(at, at + 1000)).content;
    assert.ok(content.length > OPENAI_TOOL_CALL_CHARS_MAX);
    assert.equal(content + parser.end().content, long);
  });

  test('long arguments are passed on whole', () => {
    const value = 'y'.repeat(2 * OPENAI_TOOL_CALL_CHARS_MAX);
    const result = parse(`<tool_call>{"name":"add","arguments":{"a":"${value}"}}</tool_call>`, 5000);
    assert.equal(result.calls[0]?.arguments, `{"a":"${value}"}`);
    assert.equal(result.content, '');
  });
});
