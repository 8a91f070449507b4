// The certificate of a TLS listener: what is refused at start, and how a new pair comes into use without a restart.
// Certificates are made with the openssl program.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { StatusError } from '../domain/status.ts';
import { createLogger } from '../lib/logger.ts';
import { createTlsContext, type TlsFiles } from './tls-context.ts';

const WAIT_MS = 10_000;
const openssl = spawnSync('openssl', ['version']).status === 0;

describe('tls-context', { skip: openssl ? false : 'needs the openssl program' }, () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'nereid-tls-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const at = (name: string): string => join(folder, name);

  /** Writes NAME.pem and NAME.key. */
  function makePair(name: string, subject: string): void {
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    execFileSync('openssl', ['req', '-x509', ...kind, ...files, '-subj', `/CN=${subject}`], {
      stdio: 'pipe',
    });
  }

  function filesOf(name: string, more: Partial<TlsFiles> = {}): TlsFiles {
    const pair = { serverCert: at(`${name}.pem`), serverKey: at(`${name}.key`) };
    return { isMutual: false, ...pair, rootCert: '', ...more };
  }

  function quietLogger(lines: string[] = []) {
    const sink = {
      write: (line: string) => void lines.push(line),
      flush: async () => {},
      close: async () => {},
    };
    return createLogger({ sink });
  }

  async function refused(files: TlsFiles): Promise<string> {
    const options = { files, label: 'http', protocol: 'http/1.1', logger: quietLogger() };
    const made = createTlsContext(options).then(
      (context) => {
        context.close();
        return 'not refused';
      },
      (error: StatusError) => `${error.code} ${error.message}`,
    );
    return made;
  }

  async function listen(t: TestContext, files: TlsFiles): Promise<{ port: number; lines: string[] }> {
    const lines: string[] = [];
    const logger = quietLogger(lines);
    const context = await createTlsContext({
      files,
      label: 'http',
      protocol: 'http/1.1',
      logger,
      pollMs: 20,
    });
    const sockets = new Set<TLSSocket>();
    const server = createServer({ ...context.serverOptions, allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('data', (bytes) => socket.write(bytes));
    });
    server.on('tlsClientError', () => {});
    context.attach(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      context.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, lines };
  }

  function dial(port: number, more: object = {}): TLSSocket {
    const socket = connect({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
      ...more,
    });
    socket.on('error', () => {});
    return socket;
  }

  async function subjectAt(port: number): Promise<string> {
    const socket = dial(port);
    await once(socket, 'secureConnect');
    assert.equal(socket.alpnProtocol, 'http/1.1');
    const subject = socket.getPeerCertificate().subject.CN;
    socket.destroy();
    return String(subject);
  }

  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const startMs = performance.now();
    while (!(await condition())) {
      if (performance.now() - startMs > WAIT_MS) throw new Error('waited too long');
      await sleep(10);
    }
  }

  test('what cannot be used is refused with its flag and its file', async () => {
    makePair('a', 'a');
    makePair('b', 'b');
    writeFileSync(at('bad.pem'), 'not a certificate');
    assert.equal(
      await refused(filesOf('a', { serverCert: '' })),
      'INVALID_ARG --http-use-ssl needs --http-server-cert',
    );
    assert.equal(
      await refused(filesOf('a', { serverKey: '' })),
      'INVALID_ARG --http-use-ssl needs --http-server-key',
    );
    assert.equal(
      await refused(filesOf('a', { isMutual: true })),
      'INVALID_ARG --http-use-ssl-mutual needs --http-root-cert',
    );
    const cases: [Partial<TlsFiles>, RegExp][] = [
      [{ serverCert: at('none.pem') }, /^INVALID_ARG --http-server-cert: cannot read '.*none\.pem': ENOENT/],
      [{ serverKey: at('none.key') }, /^INVALID_ARG --http-server-key: cannot read '.*none\.key': ENOENT/],
      [{ serverCert: at('bad.pem') }, /--http-server-cert: '.*bad\.pem' is not a PEM certificate: /],
      [{ serverKey: at('a.pem') }, /--http-server-key: '.*a\.pem' is not a PEM key: /],
      [{ serverKey: at('b.key') }, /a\.pem' and --http-server-key '.*b\.key' do not belong together: /],
      [{ isMutual: true, rootCert: at('none') }, /--http-root-cert: cannot read '.*none': ENOENT/],
      [
        { isMutual: true, rootCert: at('bad.pem') },
        /--http-root-cert: '.*bad\.pem' is not a PEM certificate: /,
      ],
    ];
    for (const [more, expected] of cases) assert.match(await refused(filesOf('a', more)), expected);
  });

  test('files that change are used for new connections, and old ones go on', async (t) => {
    makePair('r', 'first');
    const { port } = await listen(t, filesOf('r'));
    assert.equal(await subjectAt(port), 'first');
    const old = dial(port);
    await once(old, 'secureConnect');
    makePair('r', 'second');
    await until(async () => (await subjectAt(port)) === 'second');
    old.write('still here');
    assert.equal(String((await once(old, 'data'))[0]), 'still here');
    old.destroy();
  });

  test('a pair that is not good is an error in the log, once, and the old one stays', async (t) => {
    makePair('k', 'kept');
    const { port, lines } = await listen(t, filesOf('k'));
    writeFileSync(at('k.pem'), 'half written');
    await until(() => lines.length > 0);
    await sleep(100);
    assert.equal(lines.length, 1, lines.join());
    assert.match(lines[0]!, /^E.*the certificate in use stays: --http-server-cert: /);
    assert.equal(await subjectAt(port), 'kept');
    makePair('k', 'mended');
    await until(async () => (await subjectAt(port)) === 'mended');
  });

  test('SIGHUP reads the files again', async (t) => {
    makePair('h', 'h');
    const { lines } = await listen(t, filesOf('h'));
    process.kill(process.pid, 'SIGHUP');
    await until(() => lines.some((line) => line.includes('new connections use the certificate')));
  });

  test('mutual: only clients with a certificate of the root come in', async (t) => {
    makePair('s', 'server');
    makePair('c', 'client');
    makePair('x', 'stranger');
    const { port } = await listen(t, filesOf('s', { isMutual: true, rootCert: at('c.pem') }));
    const pairOf = (name: string) => ({
      cert: readFileSync(at(`${name}.pem`)),
      key: readFileSync(at(`${name}.key`)),
    });
    const echoOf = async (more: object): Promise<string> => {
      const socket = dial(port, more);
      socket.on('secureConnect', () => socket.write('hello'));
      const answer = await new Promise<string>((resolve) => {
        socket.on('data', (bytes) => resolve(String(bytes)));
        socket.on('close', () => resolve('closed'));
      });
      socket.destroy();
      return answer;
    };
    assert.equal(await echoOf(pairOf('c')), 'hello');
    assert.equal(await echoOf(pairOf('x')), 'closed');
    assert.equal(await echoOf({}), 'closed');
  });
});
