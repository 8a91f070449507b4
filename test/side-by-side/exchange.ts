// Sends the exchanges of a case to a server and gives the answers as they came; normal-form.ts makes them comparable.
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeAnswer, encodeRequest, GrpcClient, type StreamAnswer } from '../support/grpc.ts';
import type { RunningServer } from '../support/server.ts';
import type { Answer, CaseInput, CaseRequest, Exchange } from './cases.ts';

/** Longer than any step takes; what is not answered by then never is. */
const ANSWER_MS_MAX = 8_000;
const LOAD_MS_MAX = 15_000;
const LOG_MS_MAX = 1_000;
/** Triton refreshes its page when it is asked; the model's last words need a moment to reach the server. */
const METRICS_DELAY_MS = 300;

const WRITERS: Readonly<Record<string, (value: number) => ArrayBufferView>> = {
  BOOL: (value) => Uint8Array.of(value),
  UINT8: (value) => Uint8Array.of(value),
  UINT16: (value) => Uint16Array.of(value),
  UINT32: (value) => Uint32Array.of(value),
  UINT64: (value) => BigUint64Array.of(BigInt(value)),
  INT8: (value) => Int8Array.of(value),
  INT16: (value) => Int16Array.of(value),
  INT32: (value) => Int32Array.of(value),
  INT64: (value) => BigInt64Array.of(BigInt(value)),
  FP32: (value) => Float32Array.of(value),
  FP64: (value) => Float64Array.of(value),
};

/** What a gRPC answer has beyond what test/support looks at. */
interface GrpcAnswer {
  readonly id: string;
  readonly model_name: string;
  readonly model_version: string;
  readonly parameters: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly outputs: readonly {
    readonly name: string;
    readonly datatype: string;
    readonly shape: readonly unknown[];
  }[];
  readonly raw_output_contents: readonly Uint8Array[];
}

export class CaseClient {
  readonly #server: RunningServer;
  readonly #grpc: GrpcClient;

  constructor(server: RunningServer) {
    this.#server = server;
    this.#grpc = new GrpcClient(server.grpcAddress);
  }

  close(): void {
    this.#grpc.close();
  }

  async run(exchange: Exchange): Promise<Answer> {
    switch (exchange.kind) {
      case 'http':
        return this.#post(`/v2/models/${exchange.request.model}/infer`, httpBody(exchange.request));
      case 'grpc':
        return this.#unary(exchange.request);
      case 'stream':
        return this.#stream(exchange.requests);
      case 'cancel':
        return this.#cancel(exchange.request, exchange.afterMs);
      case 'load':
        return this.#post(`/v2/repository/models/${exchange.model}/load`, '{}', LOAD_MS_MAX);
      case 'unload':
        return this.#unload(exchange.model);
      case 'config':
        return this.#get(`/v2/models/${exchange.model}/config`);
      case 'ready':
        return this.#get(`/v2/models/${exchange.model}/ready`);
      case 'metrics':
        return this.#metrics(exchange.prefix);
      case 'log':
        return this.#log(exchange.text);
    }
  }

  async #post(path: string, body: string, msMax = ANSWER_MS_MAX): Promise<Answer> {
    try {
      const response = await fetch(`${this.#server.httpUrl}${path}`, {
        method: 'POST',
        body,
        signal: AbortSignal.timeout(msMax),
      });
      return { status: response.status, ...parsed(await response.text()) };
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError') return { isUnanswered: true };
      throw error;
    }
  }

  async #get(path: string): Promise<Answer> {
    const response = await fetch(`${this.#server.httpUrl}${path}`);
    return { status: response.status, ...parsed(await response.text()) };
  }

  async #unary(request: CaseRequest): Promise<Answer> {
    const { code, details, bytes } = await this.#grpc.call('ModelInfer', grpcMessage(request), {
      timeoutMs: ANSWER_MS_MAX,
    });
    if (details.includes('Deadline exceeded')) return { isUnanswered: true };
    if (code !== 0) return { code, error: details };
    return { code, ...grpcAnswer(decodeAnswer(bytes!) as unknown as GrpcAnswer) };
  }

  async #stream(requests: readonly CaseRequest[]): Promise<Answer> {
    const stream = this.#grpc.stream().read();
    stream.send(...requests.map(grpcMessage));
    const ended = await Promise.race([stream.end(), sleep(ANSWER_MS_MAX, undefined)]);
    const answers = stream.answers.map(streamAnswer);
    stream.call.cancel();
    return ended === undefined ? { isUnanswered: true, answers } : { code: ended.code, answers };
  }

  async #cancel(request: CaseRequest, afterMs: number): Promise<Answer> {
    const call = this.#grpc.start('ModelInfer', grpcMessage(request));
    await sleep(afterMs);
    call.cancel();
    const { code } = await call.answer;
    // The model looks every 10 ms.
    await sleep(afterMs);
    return { code };
  }

  async #unload(model: string): Promise<Answer> {
    const answer = await this.#post(`/v2/repository/models/${model}/unload`, '{}');
    for (const end = Date.now() + ANSWER_MS_MAX; Date.now() < end; await sleep(50)) {
      const index = await fetch(`${this.#server.httpUrl}/v2/repository/index`, { method: 'POST' });
      const entries = (await index.json()) as { name: string; state?: string; reason?: string }[];
      const entry = entries.find(({ name }) => name === model);
      if (entry?.state === 'UNAVAILABLE') return { ...answer, reason: entry.reason };
    }
    return { ...answer, isStillThere: true };
  }

  async #metrics(prefix: string): Promise<Answer> {
    await sleep(METRICS_DELAY_MS);
    const page = await (await fetch(this.#server.metricsUrl)).text();
    const pattern = new RegExp(`^(?:# \\w+ )?${prefix}`);
    return {
      lines: page
        .split('\n')
        .filter((line) => pattern.test(line))
        .sort(),
    };
  }

  async #log(text: string): Promise<Answer> {
    await sleep(LOG_MS_MAX);
    const lines = this.#server.logs().split('\n');
    return { lines: lines.filter((line) => line.includes(text)) };
  }
}

function parsed(text: string): Answer {
  return text === '' ? {} : (JSON.parse(text) as Answer);
}

function httpBody(request: CaseRequest): string {
  const { model: _, outputs, ...rest } = request;
  return JSON.stringify({ ...rest, ...(outputs && { outputs: outputs.map((name) => ({ name })) }) });
}

function grpcMessage(request: CaseRequest): Buffer {
  const { model, inputs, outputs, parameters, id } = request;
  const extra = {
    id: id ?? '',
    outputs: (outputs ?? []).map((name) => ({ name })),
    parameters: Object.fromEntries(
      Object.entries(parameters ?? {}).map(([name, value]) => [name, parameterOf(value)]),
    ),
  };
  const sent = inputs.map(({ name, datatype, shape, ...data }) => ({
    name,
    datatype,
    shape,
    bytes: bytesOf({ name, datatype, shape, ...data }),
  }));
  return encodeRequest(model, sent, extra);
}

function parameterOf(value: string | number | boolean): object {
  if (typeof value === 'string') return { string_param: value };
  if (typeof value === 'boolean') return { bool_param: value };
  return Number.isInteger(value) ? { int64_param: value } : { double_param: value };
}

function bytesOf(input: CaseInput): Buffer {
  if (input.hex !== undefined) return Buffer.from(input.hex, 'hex');
  const pieces = (input.data ?? []).map((value) => {
    if (input.datatype !== 'BYTES') {
      const view = WRITERS[input.datatype]!(Number(value));
      return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
    }
    const text = Buffer.from(String(value));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    return Buffer.concat([length, text]);
  });
  return Buffer.concat(pieces);
}

function grpcAnswer(answer: GrpcAnswer): Answer {
  const parameters = Object.entries(answer.parameters).map(
    ([name, value]) => [name, Object.values(value)[0]] as const,
  );
  return {
    model_name: answer.model_name,
    model_version: answer.model_version,
    ...(answer.id !== '' && { id: answer.id }),
    ...(parameters.length > 0 && { parameters: Object.fromEntries(parameters) }),
    outputs: answer.outputs.map(({ name, datatype, shape }, index) => ({
      name,
      datatype,
      shape: shape.map(Number),
      raw: Buffer.from(answer.raw_output_contents[index] ?? []).toString('hex'),
    })),
  };
}

function streamAnswer(answer: StreamAnswer): Answer {
  const error = answer.error_message === '' ? {} : { error: answer.error_message };
  return {
    ...error,
    ...(answer.infer_response && grpcAnswer(answer.infer_response as unknown as GrpcAnswer)),
  };
}
