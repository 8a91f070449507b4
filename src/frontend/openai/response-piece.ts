// One response of a model → what it says about each choice: text, finish reason, tokens. Outputs that a model does not
// have are simply missing. Pure; generation-run.ts calls it.

import type { InferResponse } from '../../domain/request.ts';
import { internal } from '../../domain/status.ts';
import { unpackBytes, unpackIntegers } from './input-tensors.ts';
import { TEXT_OUTPUT } from './text-model.ts';
import { parseLogprobs, type TokenLogprob } from './token-logprobs.ts';

export type FinishReason = 'stop' | 'length';

export interface ResponsePiece {
  /** One for each choice; bytes, because a model may cut a character in two. */
  readonly texts: readonly Buffer[];
  readonly finishReasons: readonly (FinishReason | undefined)[];
  readonly logprobs: readonly (readonly TokenLogprob[])[];
  readonly inputTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: readonly number[];
  readonly timings: unknown;
}

export function readPiece(response: InferResponse): ResponsePiece {
  let texts: readonly Buffer[] = [];
  let finishReasons: ResponsePiece['finishReasons'] = [];
  let logprobs: ResponsePiece['logprobs'] = [];
  let inputTokens: number | undefined;
  let cachedTokens: number | undefined;
  let outputTokens: readonly number[] = [];
  let timings: unknown;
  for (const output of response.outputs) {
    switch (output.name) {
      case TEXT_OUTPUT:
        texts = unpackBytes(output);
        break;
      case 'finish_reason':
        if (output.datatype === 'BYTES') finishReasons = unpackBytes(output).map(finishReasonOf);
        break;
      case 'logprobs':
        if (output.datatype === 'BYTES')
          logprobs = unpackBytes(output).map((text) => parseLogprobs(String(text)));
        break;
      case 'num_input_tokens':
        inputTokens = unpackIntegers(output)[0];
        break;
      case 'num_cached_tokens':
        cachedTokens = unpackIntegers(output)[0];
        break;
      case 'num_output_tokens':
        outputTokens = unpackIntegers(output);
        break;
      case 'timings':
        timings = readTimings(unpackBytes(output)[0]);
        break;
    }
  }
  return { texts, finishReasons, logprobs, inputTokens, cachedTokens, outputTokens, timings };
}

/** vLLM writes Python's None until a choice is finished; `abort` is a stop that nobody was meant to read. */
function finishReasonOf(text: Buffer): FinishReason | undefined {
  const reason = text.toString();
  if (reason === '' || reason.toLowerCase() === 'none') return undefined;
  return reason === 'length' ? 'length' : 'stop';
}

function readTimings(text: Buffer | undefined): unknown {
  if (text === undefined || text.length === 0) return undefined;
  try {
    return JSON.parse(text.toString());
  } catch {
    throw internal("the model's output 'timings' is not JSON");
  }
}
