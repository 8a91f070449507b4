// A small HTTP client and a load generator for the fault tests: keep-alive connections that each send one request
// after another and write down every answer with its times. A transport error is an answer with status 0.
import { Agent, request } from 'node:http';
import type { RunningServer } from './server.ts';

/** A request without an answer after this long never gets one; it counts as status 0. */
const ANSWER_MS_MAX = 20_000;

export interface Call {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: string | Buffer;
  readonly agent?: Agent;
  /** Silence for this long is no answer. */
  readonly msMax?: number;
}

export interface Answer {
  /** 0 when no answer came: the connection broke. */
  readonly status: number;
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** Never rejects. A body makes it a POST. */
export function call(server: Pick<RunningServer, 'httpUrl'>, options: Call): Promise<Answer> {
  const startMs = performance.now();
  const { body } = options;
  return new Promise((resolve) => {
    const done = (status: number, text: string) =>
      resolve({ status, text, startMs, endMs: performance.now() });
    const outgoing = request(
      `${server.httpUrl}${options.path}`,
      {
        method: options.method ?? (body === undefined ? 'GET' : 'POST'),
        headers: {
          ...options.headers,
          ...(body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }),
        },
        ...(options.agent === undefined ? {} : { agent: options.agent }),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => done(response.statusCode ?? 0, text));
        response.on('error', (error) => done(0, error.message));
      },
    );
    outgoing.on('error', (error) => done(0, error.message));
    const msMax = options.msMax ?? ANSWER_MS_MAX;
    outgoing.setTimeout(msMax, () => outgoing.destroy(new Error(`no answer in ${msMax} ms`)));
    outgoing.end(body);
  });
}

/** A JSON inference of `model` that throws unless it succeeds; returns the data of the first output. */
export async function inferNow(
  server: RunningServer,
  model: string,
  body: string,
): Promise<readonly unknown[]> {
  const answer = await call(server, { path: `/v2/models/${model}/infer`, body });
  if (answer.status !== 200) throw new Error(`${model} answered ${answer.status}: ${answer.text}`);
  const document = JSON.parse(answer.text) as { outputs: { data: unknown[] }[] };
  return document.outputs[0]!.data;
}

/** Polls until `check` is true; false after the time given. */
export async function waitUntil(check: () => boolean | Promise<boolean>, msMax = 10_000): Promise<boolean> {
  for (const end = performance.now() + msMax; performance.now() < end; ) {
    if (await check()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return check();
}

export interface Load {
  /** Everything answered so far, in the order of the answers. */
  readonly answers: readonly Answer[];
  sentCount(): number;
  /** Stops sending; resolves when every request sent has been answered. */
  stop(): Promise<readonly Answer[]>;
}

export function startLoad(
  server: RunningServer,
  options: {
    readonly model: string;
    readonly body: string;
    readonly connections: number;
    /** Between an answer and the next request; leaves the processor to what is tested. */
    readonly pauseMs?: number;
  },
): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: options.connections });
  const answers: Answer[] = [];
  let isStopped = false;
  let sentCount = 0;
  const connection = async () => {
    while (!isStopped) {
      sentCount++;
      const answer = await call(server, {
        path: `/v2/models/${options.model}/infer`,
        body: options.body,
        agent,
      });
      answers.push(answer);
      // A server that refuses at once must not turn the test into a busy loop.
      const pauseMs = answer.status === 200 ? (options.pauseMs ?? 0) : 5;
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  const connections = Array.from({ length: options.connections }, connection);
  return {
    answers,
    sentCount: () => sentCount,
    stop: async () => {
      isStopped = true;
      await Promise.all(connections);
      agent.destroy();
      return answers;
    },
  };
}

export function failuresOf(answers: readonly Answer[]): Answer[] {
  return answers.filter((answer) => answer.status !== 200);
}

/** Throws with the first failure; a diff of thousands of answers would take minutes. */
export function requireAllSucceeded(answers: readonly Answer[]): void {
  const failures = failuresOf(answers);
  const first = failures[0];
  if (first === undefined) return;
  throw new Error(
    `${failures.length} of ${answers.length} requests failed, the first with ${first.status}: ${first.text}`,
  );
}
