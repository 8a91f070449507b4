// Opening a listening socket, with errors that say which address. Used by every frontend.

import type { Server } from 'node:net';
import { internal } from '../domain/status.ts';

const BACKLOG = 1024;

export interface ListenAddress {
  readonly address: string;
  readonly port: number;
  /** SO_REUSEPORT */
  readonly isPortReused: boolean;
}

export function listenOn(server: Server, listen: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const where = `${listen.address}:${listen.port}`;
      if (error.code === 'EADDRINUSE') reject(internal(`Socket '${where}' already in use `));
      else reject(internal(`failed to listen on '${where}': ${error.message}`));
    };
    server.once('error', onError);
    const options = { host: listen.address, port: listen.port, backlog: BACKLOG };
    server.listen(listen.isPortReused ? { ...options, reusePort: true } : options, () => {
      server.off('error', onError);
      resolve();
    });
  });
}
