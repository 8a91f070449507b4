// gRPC over TLS and mutual TLS: real servers with certificates of their own and tritonclient.grpc with ssl=True.
// Certificates are made with the openssl program; the checks are written in Python (grpc_tls.py).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pythonSkip, runPython } from '../support/python.ts';
import { testChecks } from '../support/python-checks.ts';
import { addIdentity, createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const SCRIPT = 'e2e/grpc_tls.py';
const opensslSkip = spawnSync('openssl', ['version']).status === 0 ? false : 'needs the openssl program';

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

function openssl(folder: string, ...args: string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
}

/** NAME.pem and NAME.key of an authority. */
function makeAuthority(folder: string, name: string): void {
  const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`];
  openssl(folder, 'req', '-x509', ...EC_KEY, '-days', '2', '-subj', `/CN=${name}`, ...files);
}

/** NAME.pem and NAME.key for 127.0.0.1, signed by the authority. */
function makePair(folder: string, options: { name: string; authority: string }): void {
  const { name, authority } = options;
  writeFileSync(join(folder, 'san'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
  openssl(folder, 'req', ...EC_KEY, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`);
  const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
  const files = ['-in', `${name}.csr`, '-out', `${name}.pem`, '-extfile', 'san'];
  openssl(folder, 'x509', '-req', '-days', '2', ...signer, ...files);
}

describe('gRPC over TLS', { skip: opensslSkip || pythonSkip }, () => {
  let folder = '';
  let repository: TestRepository;
  let plain: RunningServer;
  let mutual: RunningServer;
  let output = '';

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nereid-grpc-tls-'));
    makeAuthority(folder, 'ca');
    makeAuthority(folder, 'stranger');
    makePair(folder, { name: 'server', authority: 'ca' });
    makePair(folder, { name: 'client', authority: 'ca' });
    makePair(folder, { name: 'intruder', authority: 'stranger' });
    repository = createRepository();
    addIdentity(repository, { name: 'echo' });
    const flags = [
      `--grpc-server-cert=${join(folder, 'server.pem')}`,
      `--grpc-server-key=${join(folder, 'server.key')}`,
    ];
    const start = (...args: string[]) =>
      startServer({ repository: repository.path, isGrpc: true, args: [...args, ...flags] });
    plain = await start('--grpc-use-ssl=true');
    mutual = await start('--grpc-use-ssl-mutual=true', `--grpc-root-cert=${join(folder, 'ca.pem')}`);
    const run = await runPython({ script: SCRIPT, args: [plain.grpcAddress, mutual.grpcAddress, folder] });
    output = run.output;
  });
  after(async () => {
    await Promise.all([plain?.stop(), mutual?.stop()]);
    repository?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  testChecks(SCRIPT, () => output);

  test('a certificate that is not there ends the start with a clear word', async () => {
    const args = ['--grpc-use-ssl=true', `--grpc-server-cert=${join(folder, 'none.pem')}`];
    await assert.rejects(startServer({ repository: repository.path, isGrpc: true, args }), /none\.pem/);
  });
});
