// Records what the real Triton answers to every case: npm run build:test, then
//
//     node dist-test/test/side-by-side/record.js
//
// writes recorded.json. Look at the difference before it is checked in.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDER, play } from './play.ts';
import { findTriton } from './triton.ts';

const played = await play(await findTriton(), (id) => console.log(id));
writeFileSync(join(FOLDER, 'recorded.json'), `${JSON.stringify(played, null, 1)}\n`);
process.exit(0);
