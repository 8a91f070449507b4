// The identity backend under the contract of backend.case.ts.
import { identityBackend } from '../../src/backends/identity/identity-backend.ts';
import { describeBackend } from './backend.case.ts';
import { makeConfig, makeContext } from './load-context.ts';

for (const delay of ['', 'parameters { key: "execute_delay_ms" value { string_value: "5" } }']) {
  describeBackend({
    backend: identityBackend,
    makeContext: () => makeContext(makeConfig('identity', delay)),
    makeBrokenContext: () => makeContext({ ...makeConfig('identity'), output: [] }),
    expected: (value) => value,
  });
}
