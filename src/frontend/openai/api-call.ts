// One request of the OpenAI API on its way through an endpoint, and how an endpoint asks a model: a run of generations, or one
// JSON document in and one out. openai-routes.ts makes the calls.

import type { InferCall } from '../../core/infer.ts';
import {
  EMPTY_REQUEST,
  type InferRequest,
  type InferResponse,
  type ResponseSink,
} from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import { internal, type StatusError } from '../../domain/status.ts';
import type { InputTensor } from '../../domain/tensor.ts';
import type { RoutedCall } from '../http-routes.ts';
import { pickHeaders } from '../wanted-headers.ts';
import { invalidField } from './api-error.ts';
import type { DocumentRequest } from './document-requests.ts';
import type { GenerationSettings } from './generation-fields.ts';
import { generationInputs, hasManyChoices } from './generation-inputs.ts';
import { type GenerationListener, GenerationRun, type RunPart } from './generation-run.ts';
import { tensorOf, unpackBytes } from './input-tensors.ts';
import type { Prompt } from './prepare-request.ts';
import type { OpenAiServices } from './services.ts';
import { findTextModel, TEXT_OUTPUT, type TextModel, VERSION_HEADER } from './text-model.ts';

export interface ApiCall {
  readonly services: OpenAiServices;
  readonly call: RoutedCall;
  /** performance.now() when the head came. */
  readonly headMs: number;
}

export function epochSecs(): number {
  return Math.floor(Date.now() / 1000);
}

export function modelOf({ services, call }: ApiCall, name: string): TextModel {
  return findTextModel(services.catalog, name, call.header(VERSION_HEADER));
}

/** What the answers are made of; a model may have outputs that cost much and that nobody asked for. */
const WANTED_OUTPUTS = [
  TEXT_OUTPUT,
  'finish_reason',
  'num_input_tokens',
  'num_output_tokens',
  'num_cached_tokens',
];

export interface GenerationPlan {
  readonly model: TextModel;
  readonly settings: GenerationSettings;
  readonly prompts: readonly Prompt[];
  /** The model itself puts the prompt before its text. */
  readonly isEcho: boolean;
}

/** Throws when a setting does not fit the model; from then on the listener is told everything. */
export function startGeneration(
  api: ApiCall,
  plan: GenerationPlan,
  createListener: (onRoom: () => void) => GenerationListener,
): void {
  const { model, settings } = plan;
  const parts = partsOf(api, plan);
  const maxTokens = settings.sampling.max_tokens;
  const listener = createListener(() => run.room());
  const run: GenerationRun = new GenerationRun(
    {
      parts,
      maxTokens: typeof maxTokens === 'number' ? maxTokens : undefined,
      structureField: settings.structure?.param,
      partsPerPrompt: parts.length / plan.prompts.length,
      cancellation: api.call.cancellation,
      infer: (call) => infer(api, model, call),
    },
    listener,
  );
  run.start();
}

function partsOf(api: ApiCall, { model, settings, prompts, isEcho }: GenerationPlan): RunPart[] {
  const { choiceCount } = settings;
  const choicesPerPart = hasManyChoices(model) ? choiceCount : 1;
  const wanted = [...WANTED_OUTPUTS];
  if (settings.logprobCount !== undefined) wanted.push('logprobs');
  if (settings.hasTimings) wanted.push('timings');
  const requestedOutputs = wanted.filter((name) => model.hasOutput(name));
  const parts: RunPart[] = [];
  for (const [i, prompt] of prompts.entries()) {
    for (let choice = 0; choice < choiceCount; choice += choicesPerPart) {
      const inputs = generationInputs(model, settings, { prompt, isEcho, choice });
      parts.push({
        request: { ...EMPTY_REQUEST, inputs, requestedOutputs },
        firstChoice: i * choiceCount + choice,
        choiceCount: choicesPerPart,
        trace: undefined,
      });
    }
  }
  const [first] = parts;
  if (first !== undefined) parts[0] = { ...first, trace: startTrace(api, model) };
  return parts;
}

function startTrace({ services, call, headMs }: ApiCall, model: TextModel): RequestTrace | undefined {
  if (!services.trace.isOn) return undefined;
  const trace = services.trace.start(model.target.model, {
    traceparent: call.header('traceparent'),
    tracestate: call.header('tracestate'),
  });
  trace?.mark('HTTP_RECV_START', headMs);
  trace?.mark('HTTP_RECV_END');
  return trace;
}

function infer(
  { services, call }: ApiCall,
  model: TextModel,
  given: Pick<InferCall, 'request' | 'sink' | 'cancellation' | 'trace'>,
): void {
  const { wantedHeaders } = model.served;
  const headers =
    wantedHeaders === undefined ? undefined : pickHeaders(wantedHeaders, (name) => call.header(name));
  services.infer(model.target, { ...given, headers });
}

/**
 * Embeddings, rerank and tokens: one JSON document in the input `input`, one in the text output. `write` makes the body of
 * the answer of it, and is called while the memory of the output is certainly there.
 */
export async function askModel(
  api: ApiCall,
  model: TextModel,
  asked: Pick<DocumentRequest, 'input' | 'document' | 'what'>,
  write: (answer: Buffer) => Buffer | Promise<Buffer>,
): Promise<Buffer> {
  const spec = model.inputs.get(asked.input);
  if (spec === undefined) {
    throw invalidField('model', `The model '${model.target.model}' does not support ${asked.what}.`);
  }
  const inputs: InputTensor[] = [tensorOf(model.served, spec, { values: [asked.document], param: 'model' })];
  const trace = startTrace(api, model);
  const request: InferRequest = { ...EMPTY_REQUEST, inputs, requestedOutputs: [TEXT_OUTPUT] };
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      const sink = new DocumentSink((answer) => resolve(write(answer)), reject);
      infer(api, model, { request, sink, cancellation: api.call.cancellation, trace });
    });
  } finally {
    trace?.mark('HTTP_SEND_START');
    trace?.mark('HTTP_SEND_END');
    trace?.end();
  }
}

class DocumentSink implements ResponseSink {
  readonly #onAnswer: (answer: Buffer) => void;
  readonly #reject: (thrown: unknown) => void;
  #answer: Buffer | undefined;

  constructor(onAnswer: (answer: Buffer) => void, reject: (thrown: unknown) => void) {
    this.#onAnswer = onAnswer;
    this.#reject = reject;
  }

  send(response: InferResponse): boolean {
    const output = response.outputs.find(({ name }) => name === TEXT_OUTPUT);
    if (output !== undefined) this.#answer ??= unpackBytes(output)[0];
    return true;
  }

  sendError(error: StatusError): boolean {
    this.#reject(error);
    return true;
  }

  finish(): void {
    try {
      if (this.#answer === undefined) throw internal('the model sent no response');
      this.#onAnswer(this.#answer);
    } catch (thrown) {
      this.#reject(thrown);
    }
  }

  fail(error: StatusError): void {
    this.#reject(error);
  }
}
