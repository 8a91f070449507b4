// Replays one case against running servers: makes its shared memory, sends each step, compares its answer with the
// recorded one, tries again while a step may still settle, and cleans up whatever happened.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Case, CaseRequest, CaseStep, ServerName } from './cases.ts';
import { type Difference, differences } from './differences.ts';
import { type GrpcTarget, grpcExchange } from './grpc-exchange.ts';
import { httpExchange } from './http-exchange.ts';
import type { JsonObject } from './json.ts';
import { normalAnswer } from './normalize.ts';
import { makeSharedMemory, readSharedMemory, removeSharedMemory } from './shared-memory.ts';

export interface ReplayTargets {
  /** "host:port" of each server. */
  readonly http: Readonly<Record<ServerName, string>>;
  readonly grpc: Readonly<Record<ServerName, GrpcTarget>>;
  readonly metrics: string;
  readonly modelsHeld: Readonly<Record<ServerName, ReadonlySet<string>>>;
}

export interface StepDifference extends Difference {
  readonly step: number;
}

export async function replayCase(one: Case, targets: ReplayTargets): Promise<StepDifference[]> {
  const found: StepDifference[] = [];
  const received: JsonObject[] = [];
  try {
    await makeSharedMemory(one.sharedMemory);
    for (const [index, step] of one.steps.entries()) {
      const { answer, diffs } = await replayStep(one, step, received, targets);
      received.push(answer);
      found.push(...diffs.map((diff) => ({ ...diff, step: index })));
    }
  } finally {
    for (const request of one.cleanup) await send(one.server, request, targets);
    await removeSharedMemory(one.sharedMemory);
  }
  return found;
}

async function replayStep(
  one: Case,
  step: CaseStep,
  received: readonly JsonObject[],
  targets: ReplayTargets,
): Promise<{ answer: JsonObject; diffs: Difference[] }> {
  const { request, compare, settleMs } = step;
  const from = compare.delta_from;
  const modelsHeld = targets.modelsHeld[one.server];
  const wantEarlier = from === undefined ? undefined : one.steps[from]?.response;
  const gotEarlier = from === undefined ? undefined : received[from];
  const want = normalAnswer(request, step.response, { compare, modelsHeld, earlier: wantEarlier });
  const deadline = Date.now() + (settleMs === 0 ? 0 : Math.max(2 * settleMs, settleMs + 1500));
  while (true) {
    const answer = await send(one.server, request, targets);
    const got = normalAnswer(request, answer, { compare, modelsHeld, earlier: gotEarlier });
    const diffs = differences(want, got);
    if (diffs.length === 0 || Date.now() >= deadline) return { answer, diffs };
    await sleep(50);
  }
}

async function send(server: ServerName, request: CaseRequest, targets: ReplayTargets): Promise<JsonObject> {
  if (request.sleep_ms !== undefined) {
    await sleep(request.sleep_ms);
    return {};
  }
  if (request.parallel !== undefined) {
    const answers = request.parallel.map(async (inner, i) => {
      await sleep(i * (request.stagger_ms ?? 0));
      return send(server, inner, targets);
    });
    return { parallel: await Promise.all(answers) };
  }
  try {
    return await sendOne(server, request, targets);
  } catch (error) {
    return { not_sent: String(error) };
  }
}

function sendOne(server: ServerName, request: CaseRequest, targets: ReplayTargets): Promise<JsonObject> {
  const { rpc, shm_read } = request;
  if (shm_read !== undefined) return readSharedMemory(shm_read);
  if (rpc !== undefined) return grpcExchange(targets.grpc[server], { ...request, rpc });
  return httpExchange(request.listener === 'metrics' ? targets.metrics : targets.http[server], request);
}

export function describeRequest(request: CaseRequest): string {
  if (request.rpc !== undefined) return `gRPC ${request.rpc}`;
  if (request.path !== undefined) return `${request.method ?? 'GET'} ${request.path}`;
  return Object.keys(request).join(', ');
}
