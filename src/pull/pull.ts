// A pull from beginning to end: source → files → downloads → checks → model directory. Called by pull-command.ts.
// Partial downloads lie in <repository>/.pull/<model>, which the server does not look at: a file that grows inside of a
// model's directory would make a server that polls load the model again and again.

import { mkdir, rm, statfs } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  bytesText,
  type Choice,
  type ChosenFile,
  chooseFiles,
  formatOf,
  ggufTarget,
  type RepositoryFile,
  splitNames,
} from './choose-files.ts';
import { type DownloadRequest, download } from './download.ts';
import { fileUrl, findCommit, type HubAccess, listFiles } from './hub.ts';
import { holdLock } from './lock.ts';
import {
  checkBeginning,
  configText,
  exists,
  isUpToDate,
  KEPT_CONFIG,
  type Provenance,
  type PulledFile,
  publish,
  sniffFormat,
} from './model-directory.ts';
import { keptByteLength } from './partial-file.ts';
import type { Progress } from './progress.ts';
import { PullError } from './pull-error.ts';
import { checkModelName, defaultNameOf, fileNameOf, parseSource, type UrlSource } from './source.ts';
import type { RetryRules } from './with-retries.ts';

export interface PullRequest {
  readonly source: string;
  readonly repository: string;
  readonly name: string | undefined;
  readonly pattern: string | undefined;
  readonly revision: string | undefined;
  /** Given by the user for this pull; sent to the host of a plain URL too. */
  readonly token: string | undefined;
  /** From the environment; for the hub alone. */
  readonly hubToken: string | undefined;
  readonly sha256: string | undefined;
  readonly isForced: boolean;
  /** Without a slash at the end. */
  readonly endpoint: string;
}

/** What is fetched, decided before the first byte of it. */
interface Plan {
  readonly choice: Choice;
  readonly from: Provenance;
  readonly urls: readonly URL[];
  readonly token: string | undefined;
  readonly tokenOrigin: string;
  readonly files?: readonly RepositoryFile[];
}

const WORK = '.pull';
/** Left free beside the model: a full disk harms more than the pull. */
const SPARE_BYTES = 64 * 1024 * 1024;

/** The directory of the model. Throws a PullError, or what the signal aborts with. */
export async function pullModel(
  request: PullRequest,
  tools: { progress: Progress; retries: RetryRules },
): Promise<string> {
  const { progress } = tools;
  const source = parseSource(request.source, request.endpoint);
  const name = checkModelName(request.name ?? defaultNameOf(source));
  const directory = join(request.repository, name);
  const work = join(request.repository, WORK, name);
  const plan =
    source.kind === 'hub' ? await planFromHub(source, request, tools) : planFromUrl(source, request);
  if ((await exists(directory)) && !request.isForced) {
    if (await hasSame(directory, plan)) {
      progress.say(`${directory} is there already, from the same source and with the same checksum`);
      return directory;
    }
    throw new PullError(
      `${directory} exists already; --force replaces it, --name gives the model another name`,
    );
  }
  await mkdir(work, { recursive: true });
  const release = await holdLock(join(work, 'lock'));
  try {
    await checkSpace(work, plan);
    const files: PulledFile[] = [];
    for (const [index, file] of plan.choice.files.entries()) {
      files.push(
        await fetchFile({ plan, file, url: plan.urls[index]!, work, sha256: request.sha256 }, tools),
      );
    }
    const model = await recognise(plan.choice, files);
    const config = configText(model.format, plan.from, model.files);
    const { isConfigKept } = await publish({ directory, work, config, files: model.files });
    if (isConfigKept) progress.say(`the config.pbtxt of before is kept as ${join(directory, KEPT_CONFIG)}`);
  } finally {
    await release();
  }
  await rm(work, { recursive: true, force: true });
  return directory;
}

async function planFromHub(
  source: { repository: string; revision: string | undefined; pattern: string | undefined },
  request: PullRequest,
  tools: { progress: Progress; retries: RetryRules },
): Promise<Plan> {
  const hub: HubAccess = {
    endpoint: request.endpoint,
    token: request.token ?? request.hubToken,
    retries: tools.retries,
  };
  const revision = request.revision ?? source.revision ?? 'main';
  const commit = await findCommit(hub, source.repository, revision);
  const files = await listFiles(hub, source.repository, commit);
  const choice = withChecksum(chooseFiles(files, request.pattern ?? source.pattern), request.sha256);
  tools.progress.say(`${source.repository}: ${choice.files.map((file) => file.path).join(', ')}`);
  if (choice.others.length > 0) {
    tools.progress.say(`others are there, for --file: ${choice.others.join(', ')}`);
  }
  return {
    choice,
    from: { url: `${hub.endpoint}/${source.repository}`, revision: { name: revision, commit } },
    urls: choice.files.map(({ path }) => fileUrl(hub, { repository: source.repository, commit, path })),
    token: hub.token,
    tokenOrigin: new URL(hub.endpoint).origin,
    files,
  };
}

function planFromUrl(source: UrlSource, request: PullRequest): Plan {
  if (request.revision !== undefined || request.pattern !== undefined) {
    throw new PullError(
      '--revision and --file choose within a repository of the hub; a URL names the file itself',
    );
  }
  const { url } = source;
  const fileName = fileNameOf(url);
  if (fileName === '') throw new PullError(`${url.href} names no file`);
  const format = formatOf(fileName) ?? 'gguf';
  const names = splitNames(fileName) ?? [fileName];
  const files = names.map((name) => ({
    path: name,
    byteLength: Number.NaN,
    sha256: undefined,
    target: format === 'gguf' ? ggufTarget(name) : 'model.onnx',
  }));
  // The query may hold a signature, which is nobody's business.
  const place = new URL(url.pathname, url.origin);
  return {
    choice: withChecksum({ format, files, others: [] }, request.sha256),
    from: { url: place.href, revision: undefined },
    urls: names.map((name) => {
      const part = new URL(url);
      part.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1) + encodeURIComponent(name);
      return part;
    }),
    token: request.token,
    tokenOrigin: url.origin,
  };
}

/** The user's checksum in the place of the hub's. */
function withChecksum(choice: Choice, sha256: string | undefined): Choice {
  if (sha256 === undefined) return choice;
  const [only, ...more] = choice.files;
  if (only === undefined || more.length > 0) {
    throw new PullError(`--sha256 is that of one file, and this model has ${choice.files.length}`);
  }
  if (only.sha256 !== undefined && only.sha256 !== sha256) {
    throw new PullError(
      `${only.path} has the wrong checksum at the hub\n  sha256 ${only.sha256}\n  should be ${sha256}`,
    );
  }
  return { ...choice, files: [{ ...only, sha256 }] };
}

async function hasSame(directory: string, plan: Plan): Promise<boolean> {
  const { format, files } = plan.choice;
  const known = files.flatMap(({ sha256, ...file }) =>
    sha256 === undefined || Number.isNaN(file.byteLength) ? [] : [{ ...file, origin: file.path, sha256 }],
  );
  if (known.length < files.length) return false;
  return isUpToDate(directory, configText(format, plan.from, known), files);
}

function partialOf(work: string, file: ChosenFile): string {
  return join(work, `${file.target}.part`);
}

async function checkSpace(work: string, plan: Plan): Promise<void> {
  let neededByteLength = 0;
  for (const file of plan.choice.files) {
    if (Number.isNaN(file.byteLength)) continue;
    neededByteLength += Math.max(0, file.byteLength - (await keptByteLength(partialOf(work, file))));
  }
  const { bavail, bsize } = await statfs(work);
  const freeByteLength = bavail * bsize;
  if (neededByteLength + SPARE_BYTES <= freeByteLength) return;
  throw new PullError(
    `the disk of ${work} has ${bytesText(freeByteLength)} free; the model needs ${bytesText(neededByteLength)} more, and ${bytesText(SPARE_BYTES)} are to stay free`,
  );
}

async function fetchFile(
  one: { plan: Plan; file: ChosenFile; url: URL; work: string; sha256: string | undefined },
  tools: { progress: Progress; retries: RetryRules },
): Promise<PulledFile> {
  const { plan, file, url } = one;
  const { progress } = tools;
  const path = partialOf(one.work, file);
  const kept = await keptByteLength(path);
  if (kept > 0) progress.say(`${basename(file.path)}: ${bytesText(kept)} are there from an earlier run`);
  progress.begin(basename(file.path), kept);
  const job: DownloadRequest = {
    url,
    path,
    byteLength: Number.isNaN(file.byteLength) ? undefined : file.byteLength,
    sha256: file.sha256,
    token: plan.token,
    tokenOrigin: plan.tokenOrigin,
    retries: tools.retries,
    ...(plan.files === undefined ? {} : { files: plan.files }),
    onProgress: (done, total) => progress.update(done, total),
  };
  const { byteLength, sha256, isVerified } = await download(job);
  const proof = isVerified ? 'checksum right' : 'no checksum to compare with';
  progress.say(`${basename(file.path)}: ${bytesText(byteLength)}, ${proof}, sha256 ${sha256}`);
  return { path, target: file.target, origin: file.path, byteLength, sha256 };
}

/** The format is what the first file says; a URL may end in anything. */
async function recognise(
  choice: Choice,
  files: readonly PulledFile[],
): Promise<{ format: Choice['format']; files: readonly PulledFile[] }> {
  const [first] = files;
  if (first === undefined) throw new PullError('the model has no file');
  if (formatOf(first.origin) === undefined && (await sniffFormat(first.path)) === 'onnx') {
    return { format: 'onnx', files: [{ ...first, target: 'model.onnx' }] };
  }
  const checked = choice.format === 'gguf' ? files : [first];
  for (const file of checked) {
    try {
      await checkBeginning(choice.format, file);
    } catch (thrown) {
      // Kept, it would be taken for a good beginning by the next run.
      await rm(file.path, { force: true });
      throw thrown;
    }
  }
  return { format: choice.format, files };
}
