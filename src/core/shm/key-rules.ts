// Which shared-memory objects a client may have registered. The server reads and writes them with its own
// rights, so a name that is known to belong to another program is refused unless the operator allows it.

import { internal, invalidArgument, type StatusError } from '../../domain/status.ts';

/** A name in a directory cannot be longer. */
const NAME_BYTES_MAX = 255;

/** Our hosts' own regions. */
const HOST_PREFIX = 'nereid-host-';
/** Triton's Python backend keeps its queues there. */
export const PYTHON_BACKEND_PREFIX = 'triton_python_backend_shm_region_';

/** Names that are free for clients stay free, so this lists programs, not what looks unlike a tensor. */
const FOREIGN_PREFIXES = [
  'sem.',
  'psm_',
  'wnsm_',
  'pymp-',
  'loky',
  'torch_',
  'nccl-',
  'cuda.shm',
  'nvidia',
  'PostgreSQL',
  'pulse-shm',
  '.org.chromium',
  'ompi_',
  'vader_segment',
  'lttng-ust',
  'u1000-',
];

/** The file name of a key; throws for a key that names no object, as shm_open would. */
export function fileNameOf(key: string, region: string): string {
  const name = withoutLeadingSlashes(key);
  if (name === '') {
    throw invalidArgument(`cannot register shared memory region '${region}' - invalid shm key '${key}'`);
  }
  const isName = name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0');
  if (!isName || Buffer.byteLength(name) > NAME_BYTES_MAX) throw cannotOpen(key);
  return name;
}

export function withoutLeadingSlashes(key: string): string {
  return key.replace(/^\/+/, '');
}

export function cannotOpen(key: string): StatusError {
  return internal(`Unable to open shared memory region: '${key}'`);
}

/** `allowedPrefixes` undefined: every name but those that belong to other programs. */
export function requireAllowedName(
  name: string,
  options: { region: string; key: string; allowedPrefixes: readonly string[] | undefined },
): void {
  const { region, key, allowedPrefixes } = options;
  const refused = `failed to register shared memory region '${region}': the key '${key}'`;
  if (name.startsWith(HOST_PREFIX)) {
    throw invalidArgument(`${refused} begins with '${HOST_PREFIX}', which the server keeps for itself`);
  }
  if (allowedPrefixes !== undefined) {
    if (allowedPrefixes.some((prefix) => name.startsWith(prefix))) return;
    throw invalidArgument(
      `${refused} begins with none of the prefixes that --shared-memory-allow lists. Add one with --shared-memory-allow=<prefix>.`,
    );
  }
  const foreign = FOREIGN_PREFIXES.find((prefix) => name.startsWith(prefix));
  if (foreign === undefined) return;
  throw invalidArgument(
    `${refused} begins with '${foreign}', as the objects of other programs do. Start the server with --shared-memory-allow=${foreign} and the prefixes of your other keys to allow it.`,
  );
}

/** Asked for an object that exists; one that does not is answered as any other missing one. */
export function requireNotReserved(name: string, options: { region: string; key: string }): void {
  if (!name.startsWith(PYTHON_BACKEND_PREFIX)) return;
  throw invalidArgument(
    `cannot register shared memory region '${options.region}' with key '${options.key}' as the key contains the reserved prefix '${PYTHON_BACKEND_PREFIX}'`,
  );
}
