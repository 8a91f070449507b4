// Which requests are open on which connection, so that a connection that closes cancels them. One listener per
// connection instead of one per request, and it also reaches pipelined requests whose turn has not come: node
// tells those nothing.

import type { Socket } from 'node:net';
import { Cancellation } from '../../lib/cancellation.ts';

const openBySocket = new WeakMap<Socket, Set<Cancellation>>();

/** Call `closeRequest` when the request is answered. */
export function openRequest(socket: Socket): Cancellation {
  const cancellation = new Cancellation();
  let open = openBySocket.get(socket);
  if (open === undefined) {
    open = new Set();
    openBySocket.set(socket, open);
    const requests = open;
    socket.once('close', () => {
      for (const request of requests) request.cancel();
      requests.clear();
    });
  }
  open.add(cancellation);
  if (socket.destroyed) cancellation.cancel();
  return cancellation;
}

export function closeRequest(socket: Socket, cancellation: Cancellation): void {
  openBySocket.get(socket)?.delete(cancellation);
}
