// Seeded mutations of valid streams of requests. First against node:http: a message that we take and it refuses, or
// that ends elsewhere, is how requests are smuggled past a proxy. Then for endurance: no exception, no hang.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createPrng, type Prng } from '../../lib/prng.ts';
import { TEXT_TYPE, textAnswer } from './answer.ts';
import { HttpConnection, type HttpHandler } from './http-connection.ts';

/** A message as a parser understood it: method, target and body with a blank in between. */
type Message = string;

const SEED = 31;
const DIFFERENTIAL_COUNT = 4000;
const ENDURANCE_COUNT = 3000;
const BATCH = 50;
const HANG_MS = 10_000;

const REQUESTS = [
  'GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /v2?a=b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n',
  'HEAD /v2 HTTP/1.1\r\nHost: a\r\nConnection: te, keep-alive\r\nTE: trailers\r\n\r\n',
  'POST /v2/a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789',
  'POST /v2/b HTTP/1.1\r\nContent-Length: 36\r\nHost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n\n',
  'POST /v2/c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nB;x=y\r\nhello world\r\n0\r\n\r\n',
  'POST /v2/d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n0\r\n\r\n1\r\n\n\r\n00\r\nA: b\r\n\r\n',
  'PUT /v2/e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc',
  'DELETE http://a/v2 HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Tab:\ta\tb \r\nContent-Length: 0\r\n\r\n',
  'POST /v2/f HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
];
const LINES = [
  'Content-Length: 5',
  'Content-Length: 05',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length:',
  'Content-Length : 5',
  'Content-Length: 0',
  'Content_Length: 5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: \x0bchunked',
  'transfer-encoding:CHUNKED',
  ' Transfer-Encoding: chunked',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Expect: x',
  '',
  ' folded',
  'GET / HTTP/1.1',
  '5',
  '0',
];
const BYTES = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  '\0',
  ':',
  ',',
  ';',
  '0',
  '1',
  '9',
  'a',
  'F',
  '-',
  '+',
  '/',
  '"',
  '\x7f',
  '\x80',
  '\xff',
  '\x0b',
];

function randomStream(random: Prng): string {
  let stream = '';
  const requestCount = random.integer(1, 4);
  for (let i = 0; i < requestCount; i++) stream += random.pick(REQUESTS);
  const mutationCount = random.pick([0, 1, 1, 1, 2, 2, 3, 6]);
  for (let i = 0; i < mutationCount; i++) stream = mutate(stream, random);
  return stream;
}

function mutate(stream: string, random: Prng): string {
  const at = random.integer(0, stream.length);
  switch (random.integer(0, 6)) {
    case 0:
      return stream.slice(0, at) + random.pick(BYTES) + stream.slice(at);
    case 1:
      return stream.slice(0, at) + random.pick(BYTES) + stream.slice(at + 1);
    case 2:
      return stream.slice(0, at) + stream.slice(at + random.integer(1, 3));
    case 3: {
      const end = stream.indexOf('\r\n', at);
      return end === -1 ? stream : `${stream.slice(0, end)}\r\n${random.pick(LINES)}${stream.slice(end)}`;
    }
    case 4: {
      const from = stream.lastIndexOf('\r\n', at);
      const to = stream.indexOf('\r\n', at);
      if (from === -1 || to === -1 || from === to) return stream;
      return stream.slice(0, to) + stream.slice(from, to) + stream.slice(to);
    }
    case 5: {
      const end = stream.indexOf('\r\n', at);
      return end === -1
        ? stream
        : stream.slice(0, end) + random.pick(['\n', '\r', ' \r\n', '\n\r\n']) + stream.slice(end + 2);
    }
    default:
      return stream.slice(0, at) + stream.charAt(at).toUpperCase() + stream.slice(at + 1);
  }
}

/** Sends in random pieces, closes its side, and resolves when the server has closed too. */
function play(server: Server, stream: string, random: Prng): Promise<string> {
  const bytes = Buffer.from(stream, 'latin1');
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const pieces: Buffer[] = [];
    const timer = setTimeout(() => reject(new Error(`hangs: ${JSON.stringify(stream)}`)), HANG_MS);
    socket.on('data', (piece) => pieces.push(piece));
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(pieces).toString('latin1'));
    });
    const cutCount = random.boolean(0.7) ? 0 : random.integer(1, 4);
    const cuts = Array.from({ length: cutCount }, () => random.integer(0, bytes.length)).sort(
      (a, b) => a - b,
    );
    let from = 0;
    const sendNext = (): void => {
      const to = cuts.shift();
      socket.write(bytes.subarray(from, to));
      from = to ?? from;
      if (to === undefined) socket.end();
      else setImmediate(sendNext);
    };
    sendNext();
  });
}

async function serveOurs(
  t: TestContext,
  begin: HttpHandler['begin'],
  log: { defects: unknown[] },
): Promise<Server> {
  const handler: HttpHandler = { begin, onDefect: (thrown) => log.defects.push(thrown) };
  const connections = new Set<HttpConnection>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections.add(new HttpConnection(socket, handler));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const connection of connections) connection.destroy();
  });
  return server;
}

/** Never answers, because an answer could end the connection before the next message is read. */
async function serveNode(t: TestContext, onMessage: (message: Message) => void): Promise<Server> {
  const onRequest = (request: IncomingMessage): void => {
    const pieces: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      onMessage(`${request.method} ${request.url} ${Buffer.concat(pieces).toString('latin1')}`);
    });
  };
  const server = createHttpServer({ requireHostHeader: false }, onRequest);
  server.on('checkExpectation', onRequest);
  // Bodies of earlier messages are delivered a moment later.
  server.on('clientError', (_error, socket) => setTimeout(() => socket.destroy(), 5));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return server;
}

/** Where we take what node:http does not, and why that is safe. */
const ALLOWED: readonly {
  readonly why: string;
  readonly is: (message: Message, stream: string) => boolean;
}[] = [
  {
    why: 'a method that nobody serves frames like any other and is answered 405; node has a closed list',
    is: (message) => !/^(?:GET|HEAD|POST|PUT|DELETE) /.test(message),
  },
  {
    why: 'targets are bytes to us: names of models may be UTF-8, and Triton takes them; node wants ASCII and a known form',
    is: (message) => !/^[A-Z]+ (?:http:\/\/a)?\/[\x21-\x7e]* /.test(message),
  },
  {
    why: 'a tab after a length or an encoding is white space by RFC 9110, 5.6.3, and cannot be read as anything else',
    is: (_, stream) => /\r\n(?:Content-Length|Transfer-Encoding):[^\r\n]*\t *\r\n/i.test(stream),
  },
  {
    why: 'an offer to upgrade may be ignored; node stops reading there, even when nobody takes the offer',
    is: (_, stream) => /\r\nUpgrade:/i.test(stream) && /\r\nConnection:[^\r\n]*upgrade/i.test(stream),
  },
];

test('node:http frames every message that we take in the same way', async (t) => {
  const random = createPrng(SEED);
  const ours: Message[] = [];
  const theirs: Message[] = [];
  const log = { defects: [] as unknown[] };
  const ourServer = await serveOurs(
    t,
    (exchange) => ({
      isBodyKept: true,
      onBody: (body) => {
        const { method, target } = exchange.head;
        ours.push(`${method} ${target} ${Buffer.concat(body.pieces).toString('latin1')}`);
        exchange.respond(textAnswer(200, '', { type: TEXT_TYPE }));
      },
    }),
    log,
  );
  const nodeServer = await serveNode(t, (message) => theirs.push(message));
  const risks: string[] = [];
  let takenCount = 0;
  for (let i = 0; i < DIFFERENTIAL_COUNT; i++) {
    ours.length = 0;
    theirs.length = 0;
    const stream = randomStream(random);
    await Promise.all([play(ourServer, stream, random), play(nodeServer, stream, random)]);
    takenCount += ours.length;
    const at = ours.findIndex((message, j) => message !== theirs[j]);
    if (at === -1 || ALLOWED.some(({ is }) => is(ours[at]!, stream))) continue;
    risks.push(JSON.stringify({ stream, at, ours, theirs }, undefined, 1));
  }
  assert.deepEqual(log.defects, []);
  assert.ok(takenCount > DIFFERENTIAL_COUNT, `only ${takenCount} messages were compared`);
  assert.equal(risks.length, 0, `${risks.length} streams differ:\n${risks.slice(0, 12).join('\n')}`);
});

test('no stream brings an exception, a hang or a server that does not answer the next client', async (t) => {
  const random = createPrng(SEED + 1);
  const log = { defects: [] as unknown[] };
  const server = await serveOurs(
    t,
    (exchange) => ({
      isBodyKept: exchange.head.target.length % 2 === 0,
      onBody: (body) => {
        const respond = (): void =>
          exchange.respond(textAnswer(200, `${body.byteLength}`, { type: TEXT_TYPE }));
        if (exchange.head.rawHeaders.length % 4 === 0) setImmediate(respond);
        else respond();
      },
    }),
    log,
  );
  const good = 'POST /goods HTTP/1.1\r\nA: b\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok';
  for (let i = 0; i < ENDURANCE_COUNT; i += BATCH) {
    const round = async (): Promise<void> => {
      const received = await play(server, randomStream(random), random);
      assert.match(received, /^(?:HTTP\/1\.1 (?:200 OK|100 Continue|400 Bad Request)\r\n[\s\S]*)?$/);
      assert.match(await play(server, good, createPrng(0)), /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n2$/);
    };
    await Promise.all(Array.from({ length: BATCH }, round));
  }
  assert.deepEqual(log.defects, []);
});
