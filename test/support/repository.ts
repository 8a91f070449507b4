// Model repositories made for one test: a temporary directory with copies of the bundled models and with identity
// models that take a given time. The caller removes it.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRoot } from './paths.ts';

export interface TestRepository {
  readonly path: string;
  /** The path of something in the repository. */
  at(...parts: string[]): string;
  remove(): void;
}

export function createRepository(): TestRepository {
  const path = mkdtempSync(join(tmpdir(), 'nereid-fault-'));
  return {
    path,
    at: (...parts) => join(path, ...parts),
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A bundled model under a name of its own; `config` replaces its config.pbtxt. */
export function addExample(
  repository: TestRepository,
  options: { readonly name: string; readonly example: string; readonly config?: string },
): void {
  cpSync(inRoot('examples', 'models', options.example), repository.at(options.name), { recursive: true });
  if (options.config !== undefined) {
    writeFileSync(repository.at(options.name, 'config.pbtxt'), options.config);
  }
}

/** OUTPUT0 = INPUT0, FP32 [-1, -1] unless `config` says more; one instance; answers after `delayMs`. */
export function addIdentity(
  repository: TestRepository,
  options: {
    readonly name: string;
    readonly delayMs?: number;
    readonly type?: string;
    readonly config?: string;
  },
): void {
  const type = options.type ?? 'TYPE_FP32';
  mkdirSync(repository.at(options.name, '1'), { recursive: true });
  writeFileSync(
    repository.at(options.name, 'config.pbtxt'),
    `backend: "identity"
input [ { name: "INPUT0" data_type: ${type} dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: ${type} dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
parameters { key: "execute_delay_ms" value { string_value: "${options.delayMs ?? 0}" } }
max_batch_size: 8
${options.config ?? ''}
`,
  );
}

/** The JSON request of an identity model; `extra` are more members of the request object. */
export function identityBody(value: number, extra: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    ...extra,
    inputs: [{ name: 'INPUT0', datatype: 'FP32', shape: [1, 1], data: [value] }],
  });
}
