// A process of its own that owns an instance, prints the process id of its host, and waits to be killed.
import type { HostCommand } from '../../src/instance/host-process.ts';
import { WatchedInstance } from './watched-instance.ts';

const watched = new WatchedInstance(JSON.parse(process.argv[2]!) as HostCommand);
await watched.start();
console.log(watched.instance.pid);
setInterval(() => {}, 60_000);
