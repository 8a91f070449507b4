// The node backend under the contract of backend.case.ts, with a model that answers at once, one that answers later and
// one whose every answer is a promise.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { nodeBackend } from '../../src/backends/node/node-backend.ts';
import { describeBackend } from './backend.case.ts';
import { makeConfig, makeContext } from './load-context.ts';

const EXECUTES = [
  '(requests) => requests.map(copy)',
  'async (requests) => requests.map(copy)',
  '(requests) => requests.map(async (request) => copy(request))',
];

for (const execute of EXECUTES) {
  const directory = mkdtempSync(join(tmpdir(), 'nereid-node-'));
  const empty = mkdtempSync(join(tmpdir(), 'nereid-node-'));
  after(() => {
    for (const path of [directory, empty]) rmSync(path, { recursive: true });
  });
  writeFileSync(
    join(directory, 'model.mjs'),
    `const copy = (request) => ({ outputs: [request.input('X').rename('Y')] });
export default { execute: ${execute} };
`,
  );
  describeBackend({
    backend: nodeBackend,
    makeContext: () => makeContext(makeConfig('node'), directory),
    makeBrokenContext: () => makeContext(makeConfig('node'), empty),
    expected: (value) => value,
  });
}
