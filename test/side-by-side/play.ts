// Plays all cases, each group on a server of its own: on a copy of models/, with the models that must load loaded. Called
// by record.ts with the real Triton and by the test with both.
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRoot } from '../support/paths.ts';
import { type RunningServer, type ServerOptions, startServer } from '../support/server.ts';
import { CALLED, GROUPS, LOADED_LATER } from './case-list.ts';
import type { Answer, Case } from './cases.ts';
import { CaseClient } from './exchange.ts';
import { normalForm } from './normal-form.ts';

export const FOLDER = inRoot('test', 'side-by-side');

/** The answers of each case, by its id. */
export type Played = Readonly<Record<string, readonly Answer[]>>;

/** A file beside the cases. */
export function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as T;
}

type Listener = (id: string, answers: readonly Answer[]) => void;

/** Many groups only wait for an answer that never comes. */
const LANES = 3;

/** `program` and `env` of the server that plays; `say` is told the answers of every case. */
export async function play(
  options: Pick<ServerOptions, 'program' | 'env'>,
  { groups = GROUPS, say = () => {} }: { groups?: readonly (readonly Case[])[]; say?: Listener } = {},
): Promise<Played> {
  const played: Record<string, readonly Answer[]> = {};
  const left = groups.values();
  const playLane = async () => {
    for (const group of left) Object.assign(played, await playGroup(group, options, say));
  };
  await Promise.all(Array.from({ length: LANES }, playLane));
  // In the order of the cases, whichever lane was first.
  return Object.fromEntries(groups.flat().map(({ id }) => [id, played[id]!]));
}

async function playGroup(
  group: readonly Case[],
  options: Pick<ServerOptions, 'program' | 'env'>,
  say: Listener,
): Promise<Played> {
  const repository = makeRepository();
  const models = modelsOf(group).filter((name) => !LOADED_LATER.includes(name));
  let server: RunningServer | undefined;
  try {
    server = await startServer({
      ...options,
      repository,
      args: ['--model-control-mode=explicit', ...models.map((name) => `--load-model=${name}`)],
      isGrpc: true,
      startMsMax: 120_000,
    });
    return await playOn(server, { group, repository, say });
  } finally {
    // Where a model hangs the real Triton would wait for it.
    await server?.stop('SIGKILL');
    rmSync(repository, { recursive: true, force: true });
  }
}

async function playOn(
  server: RunningServer,
  { group, repository, say }: { group: readonly Case[]; repository: string; say: Listener },
): Promise<Played> {
  const client = new CaseClient(server);
  const played: Record<string, Answer[]> = {};
  for (const { id, exchanges } of group) {
    const answers: Answer[] = [];
    for (const exchange of exchanges) {
      // Only a server that has died makes a call fail.
      const answer = await client.run(exchange).catch(() => ({ isBroken: true }));
      answers.push(normalForm(answer, repository));
    }
    played[id] = answers;
    say(id, answers);
  }
  client.close();
  return played;
}

/** What the cases ask, and what those models may call. */
function modelsOf(group: readonly Case[]): string[] {
  const asked = group.flatMap(({ exchanges }) =>
    exchanges.flatMap((exchange) => {
      if ('request' in exchange) return [exchange.request.model];
      return 'requests' in exchange ? exchange.requests.map(({ model }) => model) : [];
    }),
  );
  return [...new Set([...asked, ...CALLED])];
}

function makeRepository(): string {
  const repository = realpathSync(mkdtempSync(join(tmpdir(), 'nereid-side-')));
  cpSync(join(FOLDER, 'models'), repository, { recursive: true });
  for (const model of readdirSync(repository)) {
    cpSync(join(FOLDER, 'steps.py'), join(repository, model, '1', 'steps.py'));
  }
  return repository;
}
