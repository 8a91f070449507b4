// The Prometheus listener: GET /metrics. Any other path answers 200 with nothing, as in Triton.

import { createServer } from 'node:http';
import { internal } from '../../domain/status.ts';

export interface MetricsFrontend {
  readonly port: number;
  close(): void;
}

export function startMetricsFrontend(
  listen: { address: string; port: number },
  source: { contentType: string; render(): string },
): Promise<MetricsFrontend> {
  const server = createServer((req, res) => {
    if (req.method !== 'GET') {
      res.writeHead(405, { 'Content-Type': 'text/plain' }).end('{"error":"Method Not Allowed"}');
      return;
    }
    const path = (req.url ?? '/').split('?', 1)[0];
    const isMetrics = path === '/metrics' || path === '/metrics/';
    res.writeHead(200, { 'Content-Type': source.contentType }).end(isMetrics ? source.render() : '');
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(internal(`failed to listen on '${listen.address}:${listen.port}': ${error.message}`)),
    );
    server.listen(listen.port, listen.address, () => {
      const bound = server.address();
      resolve({
        port: typeof bound === 'object' && bound !== null ? bound.port : listen.port,
        close: () => {
          server.close();
          server.closeAllConnections();
        },
      });
    });
  });
}
