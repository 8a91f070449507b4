// The host of the build that is tested under the contract of host.case.ts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { HOST } from '../support/paths.ts';
import { describeHost } from './host.case.ts';

const directory = mkdtempSync(join(tmpdir(), 'nereid-host-'));
after(() => rmSync(directory, { recursive: true }));

describeHost({
  name: 'node host',
  command: { file: process.execPath, args: [HOST] },
  flagPath: join(directory, 'blocked'),
  blockedCommand: (flagPath) => {
    const [flag, url] = [flagPath, pathToFileURL(HOST).href].map((text) => JSON.stringify(text));
    const script = `if (require('node:fs').existsSync(${flag})) process.exit(3); import(${url});`;
    return { file: process.execPath, args: ['-e', script] };
  },
});
