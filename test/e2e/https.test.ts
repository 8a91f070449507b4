// HTTPS: a real server with certificates of its own, node and Python clients, a new certificate while connections
// are open, and starts that must fail with a clear word. Certificates are made with the openssl program.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { waitUntil } from '../support/load.ts';
import { pythonSkip, runPython } from '../support/python.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const opensslSkip = spawnSync('openssl', ['version']).status === 0 ? false : 'needs the openssl program';

let folder = '';
const at = (name: string): string => join(folder, name);

/** Writes NAME.pem and NAME.key, signed by itself, for 127.0.0.1. */
function makePair(name: string, subject: string): void {
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const what = ['-subj', `/CN=${subject}`, '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
  execFileSync('openssl', ['req', '-x509', ...kind, ...what, ...files], { stdio: 'pipe' });
}

function flagsOf(name: string): string[] {
  return [`--http-server-cert=${at(`${name}.pem`)}`, `--http-server-key=${at(`${name}.key`)}`];
}

interface SecureAnswer {
  readonly status: number;
  readonly text: string;
  /** Whose certificate the server showed. */
  readonly subject: string;
}

/** Trusts any certificate unless `ca` is given; the subject is what is looked at. */
async function ask(
  server: RunningServer,
  call: { path: string; body?: string; agent?: Agent; tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer } },
): Promise<SecureAnswer> {
  const outgoing = request(`https://${server.httpAddress}${call.path}`, {
    method: call.body === undefined ? 'GET' : 'POST',
    agent: call.agent ?? new Agent({ keepAlive: false, maxCachedSessions: 0 }),
    rejectUnauthorized: call.tls?.ca !== undefined,
    ...call.tls,
  });
  outgoing.end(call.body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  let text = '';
  const subject = String((response.socket as TLSSocket).getPeerCertificate().subject?.CN);
  for await (const part of response.setEncoding('utf8')) text += part;
  return { status: response.statusCode ?? 0, text, subject };
}

describe('HTTPS', { skip: opensslSkip }, () => {
  let repository: TestRepository;
  let server: RunningServer;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nereid-https-'));
    repository = createRepository();
    addIdentity(repository, { name: 'numbers' });
    makePair('server', 'first');
    makePair('client', 'client');
    server = await startServer({
      repository: repository.path,
      args: ['--http-use-ssl=true', ...flagsOf('server')],
    });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('answers whoever trusts its certificate, small and large', async () => {
    const tls = { ca: readFileSync(at('server.pem')) };
    const ready = await ask(server, { path: '/v2/health/ready', tls });
    assert.deepEqual(ready, { status: 200, text: '', subject: 'first' });
    const values = Array.from({ length: 300_000 }, (_, i) => i);
    const path = '/v2/models/numbers/generate_stream';
    const large = await ask(server, { path, body: JSON.stringify({ INPUT0: values }), tls });
    assert.equal(large.status, 200);
    const event = JSON.parse(large.text.replace(/^data: /, '')) as { OUTPUT0: number[] };
    assert.deepEqual(event.OUTPUT0, values);
  });

  test('gives no answer to plain HTTP, and goes on', async () => {
    const [host, port] = server.httpAddress.split(':');
    const socket = connectTcp({ host: host!, port: Number(port) });
    socket.on('error', () => {});
    socket.write('GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n');
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
    });
    await once(socket, 'close');
    assert.ok(!text.startsWith('HTTP'), text);
    assert.equal((await ask(server, { path: '/v2/health/live' })).status, 200);
  });

  test('requests sent ahead to a slow reader are all answered, and the end is an orderly one', async () => {
    const [host, port] = server.httpAddress.split(':');
    const socket = connectTls({ host: host!, port: Number(port), rejectUnauthorized: false });
    const failures: Error[] = [];
    socket.on('error', (error) => failures.push(error));
    socket.pause();
    const values = Array.from({ length: 100_000 }, (_, i) => i);
    const body = JSON.stringify({ INPUT0: values });
    const count = 6;
    for (let i = 1; i <= count; i++) {
      const connection = i === count ? 'close' : 'keep-alive';
      socket.write(
        `POST /v2/models/numbers/generate HTTP/1.1\r\nConnection: ${connection}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    }
    await sleep(500);
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
    });
    socket.resume();
    await once(socket, 'end');
    assert.deepEqual(failures, []);
    assert.equal(text.match(/HTTP\/1\.1 200 OK/g)?.length, count);
    assert.equal(text.match(/,99999\.0\],"model_name":"numbers"/g)?.length, count);
  });

  test('a client that closes its side is gone for the server too', async () => {
    const [host, port] = server.httpAddress.split(':');
    const socket = connectTls({ host: host!, port: Number(port), rejectUnauthorized: false });
    socket.on('error', () => {});
    await once(socket, 'secureConnect');
    socket.end();
    socket.resume();
    await once(socket, 'close');
  });

  test('the Python client', { skip: pythonSkip }, async () => {
    const args = [server.httpAddress, at('server.pem')];
    const { code, output } = await runPython({ script: 'e2e/https_client.py', args });
    assert.equal(code, 0, output);
  });

  test('a new certificate is used by new connections; an open one goes on', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    assert.equal((await ask(server, { path: '/v2/health/live', agent })).subject, 'first');
    makePair('server', 'second');
    process.kill(server.pid, 'SIGHUP');
    const isSecond = async () => (await ask(server, { path: '/v2/health/live' })).subject === 'second';
    assert.ok(await waitUntil(isSecond), server.logs());
    const again = await ask(server, { path: '/v2/models/numbers/generate', body: '{"INPUT0":[1]}', agent });
    assert.equal(again.status, 200);
    assert.equal(again.subject, 'first');
    agent.destroy();
  });

  test('a certificate that is not good is logged and the old one stays', async () => {
    const { subject } = await ask(server, { path: '/v2/health/live' });
    writeFileSync(at('server.pem'), 'not a certificate');
    // Without a signal: the server looks at the files every few seconds.
    assert.ok(await server.waitForLog(/the certificate in use stays: --http-server-cert: /, 15_000));
    assert.equal((await ask(server, { path: '/v2/health/live' })).subject, subject);
  });

  test('mutual: a client without a certificate is not served', async () => {
    makePair('mutual', 'mutual');
    const args = ['--http-use-ssl-mutual=true', ...flagsOf('mutual'), `--http-root-cert=${at('client.pem')}`];
    const mutual = await startServer({ repository: repository.path, args });
    try {
      const tls = { cert: readFileSync(at('client.pem')), key: readFileSync(at('client.key')) };
      assert.equal((await ask(mutual, { path: '/v2/health/ready', tls })).status, 200);
      await assert.rejects(ask(mutual, { path: '/v2/health/ready' }));
    } finally {
      await mutual.stop();
    }
  });

  test('a client that never shakes hands does not hold the end of the server', async () => {
    makePair('end', 'end');
    const args = ['--http-use-ssl=true', ...flagsOf('end')];
    const ending = await startServer({ repository: repository.path, args });
    const [host, port] = ending.httpAddress.split(':');
    const silent = connectTcp({ host: host!, port: Number(port) });
    silent.on('error', () => {});
    await once(silent, 'connect');
    assert.equal((await ending.stop()).code, 0);
    silent.destroy();
  });

  test('starts that cannot work name the flag and the file', async () => {
    makePair('good', 'good');
    makePair('other', 'other');
    const cases: [string[], RegExp][] = [
      [['--http-use-ssl=true'], /--http-use-ssl needs --http-server-cert/],
      [
        ['--http-use-ssl=true', `--http-server-cert=${at('none')}`, `--http-server-key=${at('good.key')}`],
        /--http-server-cert: cannot read '.*none': ENOENT/,
      ],
      [
        [
          '--http-use-ssl=true',
          `--http-server-cert=${at('good.pem')}`,
          `--http-server-key=${at('other.key')}`,
        ],
        /good\.pem' and --http-server-key '.*other\.key' do not belong together/,
      ],
    ];
    for (const [args, message] of cases) {
      await assert.rejects(startServer({ repository: repository.path, args }), message);
    }
  });
});
