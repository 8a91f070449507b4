// Records what the real Triton answers to every case: npm run build:test, then
//
//     node dist-test/test/side-by-side/record.js
//
// writes recorded.json. Look at the difference before it is checked in.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER, play } from './play.ts';
import { findTriton, removeRegions } from './triton.ts';

// A recording that is stopped must not leave a server behind: only an exit ends it.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const triton = await findTriton();
if ('reason' in triton) throw new Error(triton.reason);
const played = await play(triton, { say: (id, answers) => console.log(id, JSON.stringify(answers)) });
removeRegions();
writeFileSync(join(FOLDER, 'recorded.json'), `${JSON.stringify(played, null, 1)}\n`);
process.exit(0);
