// Plays all cases against one server: on a copy of models/, with the models that must load loaded. Called by record.ts
// with the real Triton and by the test with Nereid.
import { cpSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRoot } from '../support/paths.ts';
import { type RunningServer, type ServerOptions, startServer } from '../support/server.ts';
import { CASES, LOADED_LATER } from './case-list.ts';
import type { Answer } from './cases.ts';
import { CaseClient } from './exchange.ts';
import { normalForm } from './normal-form.ts';

export const FOLDER = inRoot('test', 'side-by-side');

/** The answers of each case, by its id. */
export type Played = Readonly<Record<string, readonly Answer[]>>;

/** `program` and `env` of the server that plays; `say` is told every case before it is played. */
export async function play(
  options: Pick<ServerOptions, 'program' | 'env'>,
  say: (id: string) => void = () => {},
): Promise<Played> {
  const repository = makeRepository();
  const models = readdirSync(repository).filter((name) => !LOADED_LATER.includes(name));
  let server: RunningServer | undefined;
  try {
    server = await startServer({
      ...options,
      repository,
      args: ['--model-control-mode=explicit', ...models.map((name) => `--load-model=${name}`)],
      isGrpc: true,
      startMsMax: 120_000,
    });
    return await playOn(server, repository, say);
  } finally {
    // Where a model hangs the real Triton would wait for it.
    await server?.stop('SIGKILL');
    rmSync(repository, { recursive: true, force: true });
  }
}

async function playOn(
  server: RunningServer,
  repository: string,
  say: (id: string) => void,
): Promise<Record<string, Answer[]>> {
  const client = new CaseClient(server);
  const played: Record<string, Answer[]> = {};
  for (const { id, exchanges } of CASES) {
    say(id);
    const answers: Answer[] = [];
    for (const exchange of exchanges) answers.push(normalForm(await client.run(exchange), repository));
    played[id] = answers;
  }
  client.close();
  return played;
}

function makeRepository(): string {
  const repository = realpathSync(mkdtempSync(join(tmpdir(), 'nereid-side-')));
  cpSync(join(FOLDER, 'models'), repository, { recursive: true });
  for (const model of readdirSync(repository)) {
    cpSync(join(FOLDER, 'steps.py'), join(repository, model, '1', 'steps.py'));
  }
  return repository;
}
