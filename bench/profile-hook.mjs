// Loaded into the server and its hosts by profile.mjs (`--import`): a CPU profile from start to exit, written to
// NEREID_BENCH_PROFILE_FOLDER. Node 20 does not take --cpu-prof from NODE_OPTIONS, the only way into a host.
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename, join } from 'node:path';

const folder = process.env.NEREID_BENCH_PROFILE_FOLDER;
const SAMPLE_US = 500;

if (folder) {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
  session.post('Profiler.start');
  process.on('exit', () => {
    // The session is of this thread, so the answer comes before post returns.
    session.post('Profiler.stop', (error, answer) => {
      if (error) return;
      const name = `${basename(process.argv[1] ?? 'node', '.js')}-${process.pid}.cpuprofile`;
      writeFileSync(join(folder, name), JSON.stringify(answer.profile));
    });
  });
}
