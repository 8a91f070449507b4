// The answers of one generation: what is sent when, to a client that reads, one that reads slowly, and one that has gone.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExecuteOutputs, ResponseSender } from '../../../backend/sdk.ts';
import { StatusError } from '../../../domain/status.ts';
import { createPrng } from '../../../lib/prng.ts';
import { CandidateList } from '../engine/candidate-list.ts';
import { Choice } from '../engine/choice.ts';
import { TokenSampler } from '../engine/token-sampler.ts';
import { type GenerationReport, GenerationResponder, type ResponderOptions } from './generation-responder.ts';
import { ResponseTensors } from './response-tensors.ts';

const PIECES = ['', ' one', ' two', ' three'];
const END = 0;
const NAMES = [
  'text_output',
  'finish_reason',
  'num_output_tokens',
  'num_input_tokens',
  'num_cached_tokens',
  'timings',
];
const INDEXES = new Map(NAMES.map((name, index) => [name, index]));

interface Sent {
  readonly outputs: Readonly<Record<string, readonly (string | number)[]>>;
  readonly error: string | undefined;
  readonly isFinal: boolean;
}

class NotedSender implements ResponseSender {
  readonly sent: Sent[] = [];
  readonly isCancelled = false;
  hasRoom = true;
  #wake: () => void = () => {};

  whenRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async makeRoom(): Promise<void> {
    this.hasRoom = true;
    this.#wake();
    await new Promise(setImmediate);
  }

  send(response: ExecuteOutputs | StatusError, isFinal: boolean): void {
    assert.equal(this.sent.at(-1)?.isFinal ?? false, false, 'nothing follows the last response');
    const isError = response instanceof StatusError;
    const outputs = isError
      ? []
      : response.map(({ index, data }) => [NAMES[index]!, decode(NAMES[index]!, data)] as const);
    this.sent.push({
      outputs: Object.fromEntries(outputs),
      error: isError ? response.message : undefined,
      isFinal,
    });
  }

  finish(): void {
    throw new Error('a generation ends with its last response');
  }
}

function decode(name: string, data: Buffer): (string | number)[] {
  if (name.startsWith('num_'))
    return Array.from({ length: data.length / 4 }, (_, i) => data.readUInt32LE(i * 4));
  const texts: string[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 4 + data.readUInt32LE(at);
    texts.push(data.toString('utf8', at + 4, end));
    at = end;
  }
  return texts;
}

function makeChoice(grammar: { free(): void }): Choice {
  const sampler = new TokenSampler(
    {
      ...{ temperature: 0, topK: 0, topP: 1, minP: 0, typicalP: 1, penaltyLastTokens: -1 },
      ...{ repetitionPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, logitBias: new Map() },
    },
    [],
    createPrng(1),
    new CandidateList(PIECES.length),
  );
  const vocabulary = {
    endTokens: [END],
    isEndOfGeneration: (token: number) => token === END,
    piece: (token: number) => Buffer.from(PIECES[token]!),
  };
  const settings = {
    ...{ maxTokens: 3, minTokens: 0, stop: [], isStopIncluded: false, stopTokens: new Set<number>() },
    ...{ isEndIgnored: false, isSpecialShown: false, logprobCount: undefined, isLookup: false },
  };
  const allowsAll = { allows: () => true, mask: () => {}, accept: () => {}, free: () => grammar.free() };
  return new Choice(vocabulary, settings, [], { sampler, grammar: allowsAll });
}

function setUp(options: Partial<ResponderOptions> & { choiceCount?: number } = {}) {
  const counts = { freed: 0 };
  const reports: GenerationReport[] = [];
  const sender = new NotedSender();
  const choices = Array.from({ length: options.choiceCount ?? 1 }, () =>
    makeChoice({ free: () => counts.freed++ }),
  );
  const responder = new GenerationResponder({
    ...{ prompt: [7, 8], choices, adapter: 0, priority: 0, maxTokens: 3, isDrafted: false, isStream: true },
    ...{ echo: '', extras: new Set(), logprobsFormat: 'vllm', sender },
    pieceOf: (token) => Buffer.from(PIECES[token]!),
    tensors: () => new ResponseTensors(INDEXES, []),
    onStarted: () => {},
    onEnd: (report) => reports.push(report),
    ...options,
  });
  const take = (...tokens: number[]) => {
    tokens.forEach((token, i) => {
      choices[i]!.take(token);
    });
    responder.onNews();
  };
  const texts = () => sender.sent.map(({ outputs }) => outputs.text_output);
  return { responder, sender, choices, reports, counts, take, texts };
}

describe('answering a generation', () => {
  test('a stream has each token once, and its end once', () => {
    const { sender, reports, counts, take, texts } = setUp({
      extras: new Set(['finishReason', 'outputTokens']),
    });
    for (const token of [1, 2, END]) take(token);
    assert.deepEqual(texts(), [[' one'], [' two'], ['']]);
    assert.deepEqual(
      sender.sent.map(({ isFinal }) => isFinal),
      [false, false, true],
    );
    assert.deepEqual(
      sender.sent.map(({ outputs }) => outputs.finish_reason),
      [['None'], ['None'], ['stop']],
    );
    assert.deepEqual(
      sender.sent.map(({ outputs }) => outputs.num_output_tokens),
      [[1], [1], [1]],
    );
    assert.equal(reports.length, 1);
    assert.equal(reports[0]!.reason, 'stop');
    assert.equal(reports[0]!.generatedTokens, 3);
    assert.equal(counts.freed, 1);
  });

  test('without a stream there is one answer, with the prompt before it where it is wanted', () => {
    const { responder, sender, reports, take, texts } = setUp({
      isStream: false,
      echo: 'Count:',
      extras: new Set(['inputTokens', 'outputTokens', 'timings']),
    });
    responder.onStarted(1);
    for (const token of [1, 2, 3]) take(token);
    assert.deepEqual(texts(), [['Count: one two three']]);
    const { outputs, isFinal } = sender.sent[0]!;
    assert.equal(isFinal, true);
    assert.deepEqual(outputs.num_input_tokens, [2]);
    assert.deepEqual(outputs.num_cached_tokens, [1]);
    assert.deepEqual(outputs.num_output_tokens, [3]);
    const timings = JSON.parse(String(outputs.timings![0]));
    assert.equal(timings.completion_tokens, 3);
    assert.ok(timings.total_ms >= timings.time_to_first_token_ms);
    assert.equal(reports[0]!.reason, 'length');
  });

  test('several choices go on until the last is finished', () => {
    const { sender, choices, responder, take, texts } = setUp({ choiceCount: 2 });
    take(1, END);
    choices[0]!.take(2);
    responder.onNews();
    choices[0]!.take(3);
    responder.onNews();
    assert.deepEqual(texts(), [
      [' one', ''],
      [' two', ''],
      [' three', ''],
    ]);
    assert.deepEqual(
      sender.sent.map(({ isFinal }) => isFinal),
      [false, false, true],
    );
  });

  test('a slow reader gets its text in larger pieces, and all of it', async () => {
    const { sender, take, texts, reports } = setUp();
    take(1);
    sender.hasRoom = false;
    take(2);
    take(3);
    assert.deepEqual(texts(), [[' one']]);
    assert.equal(reports.length, 0);
    await sender.makeRoom();
    assert.deepEqual(texts(), [[' one'], [' two three']]);
    assert.equal(sender.sent.at(-1)!.isFinal, true);
    assert.equal(reports.length, 1);
  });

  test('a client that goes is told once and costs nothing more', async () => {
    const { responder, sender, take, reports, counts } = setUp({ choiceCount: 2 });
    take(1, 1);
    sender.hasRoom = false;
    take(2, 2);
    responder.cancel();
    responder.cancel();
    take(3, 3);
    await sender.makeRoom();
    assert.deepEqual(
      sender.sent.map(({ error }) => error),
      [undefined, 'Request was cancelled'],
    );
    assert.deepEqual(
      reports.map(({ reason }) => reason),
      ['abort'],
    );
    assert.equal(counts.freed, 2);
  });

  test('an error ends it', () => {
    const { responder, sender, take, reports } = setUp();
    responder.onError(new StatusError('INTERNAL', 'broken'));
    take(1);
    assert.deepEqual(
      sender.sent.map(({ error, isFinal }) => [error, isFinal]),
      [['broken', true]],
    );
    assert.equal(reports[0]!.firstTokenMs, undefined);
  });

  test('one that was never taken tells nobody, and frees its grammars', () => {
    const { responder, sender, reports, counts } = setUp();
    responder.drop();
    responder.cancel();
    assert.equal(sender.sent.length + reports.length, 0);
    assert.equal(counts.freed, 1);
  });
});
