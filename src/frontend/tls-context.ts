// The certificate of a TLS listener: read and checked at start, read again on SIGHUP and when its files change. Open
// connections keep what they have; new ones get the new pair. A pair that is not good is logged and the old one stays.
// Every frontend that speaks TLS makes one for its listener.

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls';
import { invalidArgument, StatusError } from '../domain/status.ts';
import type { Logger } from '../lib/logger.ts';

/** Paths of PEM files, as the flags give them; empty when a flag was not given. */
export interface TlsFiles {
  readonly isMutual: boolean;
  readonly serverCert: string;
  readonly serverKey: string;
  /** What client certificates are checked against; read only when they are asked for. */
  readonly rootCert: string;
}

export interface TlsContextOptions {
  readonly files: TlsFiles;
  /** Of the listener, as in its flags: `http` for --http-server-cert. */
  readonly label: string;
  /** The one protocol of the listener: `http/1.1` or `h2`. */
  readonly protocol: string;
  readonly logger: Logger;
  /** How often the files are looked at; for tests. */
  readonly pollMs?: number;
}

export interface TlsContext {
  /** For tls.createServer or http2.createSecureServer. */
  readonly serverOptions: TlsOptions;
  /** From now on `server` gets each new pair, until `close`. */
  attach(server: TlsServer): void;
  close(): void;
}

interface TlsServer {
  setSecureContext(options: SecureContextOptions): void;
}

/** Looking at three files costs nothing; a new certificate is in use soon after it was written. */
const POLL_MS = 5_000;

/** Throws a StatusError that names the flag and the file when the pair cannot be used. */
export async function createTlsContext(options: TlsContextOptions): Promise<TlsContext> {
  const { files } = options;
  requireFlags(options);
  const seen = await stampOf(files);
  const secure = await readPair(options);
  return {
    serverOptions: {
      ...secure,
      requestCert: files.isMutual,
      rejectUnauthorized: files.isMutual,
      ALPNProtocols: [options.protocol],
      minVersion: 'TLSv1.2',
    },
    ...watchFiles(options, seen),
  };
}

function watchFiles(options: TlsContextOptions, firstStamp: string): Pick<TlsContext, 'attach' | 'close'> {
  const { files, label, logger } = options;
  let server: TlsServer | undefined;
  let seen = firstStamp;
  let isBusy = false;
  const reload = async (isForced: boolean): Promise<void> => {
    const target = server;
    if (target === undefined || isBusy) return;
    isBusy = true;
    try {
      // Before reading: what changes in between is seen at the next look.
      const stamp = await stampOf(files);
      if (!isForced && stamp === seen) return;
      seen = stamp;
      target.setSecureContext(await readPair(options));
      logger.info(`${label}: new connections use the certificate of '${files.serverCert}' as it is now`);
    } catch (thrown) {
      logger.error(`${label}: the certificate in use stays: ${StatusError.from(thrown).message}`);
    } finally {
      isBusy = false;
    }
  };
  const onSignal = (): void => void reload(true);
  const timer = setInterval(() => void reload(false), options.pollMs ?? POLL_MS);
  timer.unref();
  process.on('SIGHUP', onSignal);
  return {
    attach: (listener) => {
      server = listener;
    },
    close: () => {
      server = undefined;
      clearInterval(timer);
      process.off('SIGHUP', onSignal);
    },
  };
}

function requireFlags({ files, label }: TlsContextOptions): void {
  const asked = files.isMutual ? `--${label}-use-ssl-mutual` : `--${label}-use-ssl`;
  if (files.serverCert === '') throw invalidArgument(`${asked} needs --${label}-server-cert`);
  if (files.serverKey === '') throw invalidArgument(`${asked} needs --${label}-server-key`);
  if (files.isMutual && files.rootCert === '') throw invalidArgument(`${asked} needs --${label}-root-cert`);
}

function pathsOf(files: TlsFiles): string[] {
  const pair = [files.serverCert, files.serverKey];
  return files.isMutual ? [...pair, files.rootCert] : pair;
}

/** Differs when a file was written or replaced, also behind a symbolic link. Time alone is too coarse for that. */
async function stampOf(files: TlsFiles): Promise<string> {
  const stamps = pathsOf(files).map(async (path) => {
    const info = await stat(path).catch(() => undefined);
    return info === undefined ? 'none' : `${info.ino} ${info.size} ${info.mtimeMs}`;
  });
  return (await Promise.all(stamps)).join(', ');
}

/** Reads the files and tries them out one by one, so that the message can say which one is wrong. */
async function readPair({ files, label }: TlsContextOptions): Promise<SecureContextOptions> {
  const cert = await readPem(`--${label}-server-cert`, files.serverCert);
  const key = await readPem(`--${label}-server-key`, files.serverKey);
  tryOut(`--${label}-server-cert: '${files.serverCert}' is not a PEM certificate`, { cert });
  tryOut(`--${label}-server-key: '${files.serverKey}' is not a PEM key`, { key });
  const pair = `--${label}-server-cert '${files.serverCert}' and --${label}-server-key '${files.serverKey}'`;
  tryOut(`${pair} do not belong together`, { cert, key });
  if (!files.isMutual) return { cert, key };
  const ca = await readPem(`--${label}-root-cert`, files.rootCert);
  // OpenSSL takes any text for a list of roots, an empty one.
  explain(
    `--${label}-root-cert: '${files.rootCert}' is not a PEM certificate`,
    () => new X509Certificate(ca),
  );
  return { cert, key, ca };
}

async function readPem(flag: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (thrown) {
    throw invalidArgument(`${flag}: cannot read '${path}': ${StatusError.from(thrown).message}`);
  }
}

function tryOut(complaint: string, options: SecureContextOptions): void {
  explain(complaint, () => createSecureContext(options));
}

function explain(complaint: string, attempt: () => unknown): void {
  try {
    attempt();
  } catch (thrown) {
    throw invalidArgument(`${complaint}: ${StatusError.from(thrown).message}`);
  }
}
