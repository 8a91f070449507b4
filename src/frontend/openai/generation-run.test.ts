import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMPTY_REQUEST, type InferResponse, type ResponseSink } from '../../domain/request.ts';
import { internal, unavailable } from '../../domain/status.ts';
import type { OutputTensor } from '../../domain/tensor.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import { createPrng } from '../../lib/prng.ts';
import { type ChoicePiece, type GenerationListener, GenerationRun, type Usage } from './generation-run.ts';
import { packStrings } from './input-tensors.ts';

function bytesOutput(name: string, elements: readonly Buffer[]): OutputTensor {
  const data = Buffer.concat(
    elements.flatMap((element) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(element.length);
      return [length, element];
    }),
  );
  return { name, datatype: 'BYTES', shape: [elements.length], data: [data], byteLength: data.length };
}

function countsOutput(name: string, counts: readonly number[]): OutputTensor {
  const data = Buffer.alloc(counts.length * 4);
  counts.forEach((count, i) => {
    data.writeUInt32LE(count, i * 4);
  });
  return { name, datatype: 'UINT32', shape: [counts.length], data: [data], byteLength: data.length };
}

function response(texts: readonly (string | Buffer)[], more: readonly OutputTensor[] = []): InferResponse {
  const elements = texts.map((text) => Buffer.from(text as string));
  return {
    modelName: 'm',
    modelVersion: 1,
    id: '',
    parameters: undefined,
    outputs: [bytesOutput('text_output', elements), ...more],
  };
}

interface Started {
  readonly run: GenerationRun;
  readonly sinks: ResponseSink[];
  readonly cancellations: Cancellation[];
  readonly client: Cancellation;
  /** What the client was told. */
  readonly pieces: ChoicePiece[];
  readonly ends: (Usage | undefined | string)[];
  listener: { isBehind: boolean };
}

function start(options: {
  parts: number;
  choices?: number;
  maxTokens?: number;
  partsPerPrompt?: number;
  refuseAt?: number;
}): Started {
  const { parts, choices = 1 } = options;
  const sinks: ResponseSink[] = [];
  const cancellations: Cancellation[] = [];
  const pieces: ChoicePiece[] = [];
  const ends: Started['ends'] = [];
  const client = new Cancellation();
  const listener: GenerationListener & { isBehind: boolean } = {
    isBehind: false,
    onPiece: (piece) => pieces.push(piece),
    onTimings: () => {},
    onDone: (usage) => ends.push(usage),
    onError: (error) => ends.push(error.message),
  };
  const run = new GenerationRun(
    {
      parts: Array.from({ length: parts }, (_, i) => ({
        request: EMPTY_REQUEST,
        firstChoice: i * choices,
        choiceCount: choices,
        trace: undefined,
      })),
      maxTokens: options.maxTokens,
      structureField: undefined,
      partsPerPrompt: options.partsPerPrompt ?? 1,
      cancellation: client,
      infer: ({ sink, cancellation }) => {
        if (sinks.length === options.refuseAt) throw unavailable('the queue is full');
        sinks.push(sink);
        cancellations.push(cancellation!);
      },
    },
    listener,
  );
  run.start();
  return { run, sinks, cancellations, client, pieces, ends, listener };
}

describe('a run of generations', () => {
  test('numbers the choices over all parts and counts their tokens', () => {
    const { sinks, pieces, ends } = start({ parts: 2, choices: 2 });
    for (const sink of sinks) {
      const counts = [
        countsOutput('num_input_tokens', [5]),
        countsOutput('num_output_tokens', [1, 2]),
        countsOutput('num_cached_tokens', [3]),
        bytesOutput('finish_reason', [Buffer.from('None'), Buffer.from('length')]),
      ];
      assert.equal(sink.send(response(['a', 'b'], counts), false), true);
      sink.finish();
    }
    assert.deepEqual(
      pieces.map(({ choice, text, finishReason }) => [choice, text, finishReason]),
      [
        [0, 'a', undefined],
        [1, 'b', 'length'],
        [0, '', 'stop'],
        [2, 'a', undefined],
        [3, 'b', 'length'],
        [2, '', 'stop'],
      ],
    );
    assert.deepEqual(ends, [{ promptTokens: 10, completionTokens: 6, cachedTokens: 6 }]);
  });

  test('counts a prompt once that several parts have', () => {
    const { sinks, ends } = start({ parts: 3, partsPerPrompt: 3 });
    for (const sink of sinks) {
      sink.send(
        response(['a'], [countsOutput('num_input_tokens', [5]), countsOutput('num_output_tokens', [1])]),
        true,
      );
      sink.finish();
    }
    assert.deepEqual(ends, [{ promptTokens: 5, completionTokens: 3, cachedTokens: undefined }]);
  });

  test('knows no usage when the model does not count, and no reason but the limit', () => {
    const silent = start({ parts: 1 });
    silent.sinks[0]!.send(response(['a']), true);
    silent.sinks[0]!.finish();
    assert.deepEqual(silent.ends, [undefined]);
    for (const [maxTokens, reason] of [
      [2, 'length'],
      [3, 'stop'],
    ] as const) {
      const { sinks, pieces } = start({ parts: 1, maxTokens });
      sinks[0]!.send(response(['a'], [countsOutput('num_output_tokens', [2])]), true);
      sinks[0]!.finish();
      assert.equal(pieces.at(-1)?.finishReason, reason);
    }
  });

  test('never splits a character, and gives out what is left of a broken one', () => {
    const { sinks, pieces } = start({ parts: 1 });
    const bytes = Buffer.from('a😀é');
    for (const byte of bytes) sinks[0]!.send(response([Buffer.from([byte])]), false);
    sinks[0]!.send(response([Buffer.from([0xf0, 0x9f])]), false);
    sinks[0]!.finish();
    assert.deepEqual(
      pieces.map(({ text }) => text),
      ['a', '😀', 'é', '\ufffd'],
    );
  });

  test('a slow client holds every part back', () => {
    const { run, sinks, listener } = start({ parts: 2 });
    assert.equal(sinks[0]!.send(response(['a']), false), true);
    listener.isBehind = true;
    let roomCount = 0;
    for (const sink of sinks) {
      assert.equal(sink.send(response(['a']), false), false);
      sink.onRoom = () => {
        roomCount++;
      };
    }
    run.room();
    assert.equal(roomCount, 2);
  });

  test('one part that fails ends the others, once, and not while it is being told', async () => {
    const { sinks, cancellations, ends, pieces } = start({ parts: 3 });
    const cancelled = () => cancellations.map(({ isCancelled }) => isCancelled);
    sinks[0]!.send(response(['a']), false);
    sinks[1]!.sendError(internal('bad'), true);
    assert.deepEqual(cancelled(), [false, false, false]);
    sinks[1]!.finish();
    await Promise.resolve();
    assert.deepEqual(cancelled(), [true, false, true]);
    assert.equal(sinks[0]!.send(response(['b']), false), true);
    sinks[0]!.fail(internal('cancelled'));
    sinks[2]!.finish();
    assert.deepEqual(ends, ['bad']);
    assert.equal(pieces.length, 1);
  });

  test('a model that goes on after an error is told that nobody listens', async () => {
    const { sinks, cancellations, ends } = start({ parts: 1 });
    sinks[0]!.sendError(internal('bad'), false);
    await Promise.resolve();
    assert.equal(cancellations[0]!.isCancelled, true);
    assert.deepEqual(ends, ['bad']);
  });

  test('a part that is refused ends those before it, and none is started after it', async () => {
    const { sinks, cancellations, ends } = start({ parts: 3, refuseAt: 1 });
    await Promise.resolve();
    assert.equal(sinks.length, 1);
    assert.ok(cancellations[0]!.isCancelled);
    assert.deepEqual(ends, ['the queue is full']);
  });

  test('a response that cannot be read is a failure', () => {
    const { sinks, ends } = start({ parts: 1 });
    const cut = packStrings(['abc']).subarray(0, 5);
    const output: OutputTensor = { ...bytesOutput('text_output', []), data: [cut], byteLength: cut.length };
    sinks[0]!.send({ ...response([]), outputs: [output] }, false);
    sinks[0]!.finish();
    assert.deepEqual(ends, ["the model's output 'text_output' is cut off"]);
  });

  test('the client is told one end, or none when it has gone, whatever happens', () => {
    const prng = createPrng(7);
    const below = (bound: number) => prng.integer(0, bound - 1);
    for (let round = 0; round < 2000; round++) {
      const { sinks, client, ends, cancellations } = start({ parts: 1 + below(3), choices: 1 + below(2) });
      const open = new Set(sinks);
      let isGone = false;
      while (open.size > 0) {
        const sink = [...open][below(open.size)]!;
        const what = below(20);
        if (what === 0 && !isGone) {
          isGone = ends.length === 0;
          client.cancel();
          for (const [i, { isCancelled }] of cancellations.entries()) {
            if (open.has(sinks[i]!)) assert.ok(isCancelled);
          }
        } else if (what === 1) sink.sendError(internal('e'), false);
        else if (what === 2) sink.fail(internal('f'));
        else if (what < 6) sink.finish();
        else sink.send(response(['x', 'y']), false);
        if (what === 2 || (what >= 3 && what < 6)) open.delete(sink);
      }
      assert.equal(ends.length, isGone ? 0 : 1);
    }
  });
});
