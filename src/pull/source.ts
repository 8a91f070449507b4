// What the user names as the source of a pull, read into a place: a repository of the hub, or the URL of a file.
// Pure; pull.ts calls it. The hub's own URLs are repositories too, so that their checksums are known.

import { PullError } from './pull-error.ts';

export const PUBLIC_HUB = 'https://huggingface.co';

export interface HubSource {
  readonly kind: 'hub';
  /** "owner/name", or one word for the oldest repositories. */
  readonly repository: string;
  /** From the URL; undefined when it names none. */
  readonly revision: string | undefined;
  /** The file that the URL names, or a part of its name after a colon: owner/name:Q8_0. */
  readonly pattern: string | undefined;
}

export interface UrlSource {
  readonly kind: 'url';
  readonly url: URL;
}

export type Source = HubSource | UrlSource;

const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;

/** `endpoint` is the hub in use: the public one, or what HF_ENDPOINT names. */
export function parseSource(text: string, endpoint: string): Source {
  const url = /^https?:\/\//i.test(text) ? parseUrl(text) : undefined;
  if (url !== undefined) return fromHubUrl(url, endpoint) ?? { kind: 'url', url };
  const [name = '', pattern] = text.replace(/^hf:(?:\/\/)?/, '').split(/:(.+)/s);
  if (!REPOSITORY.test(name) || name.split('/').some((part) => /^\.+$/.test(part))) {
    throw new PullError(
      `'${text}' is no source. Give a repository of the hub (owner/name), or the URL of a .gguf or .onnx file.`,
    );
  }
  return { kind: 'hub', repository: name, revision: undefined, pattern };
}

function parseUrl(text: string): URL {
  try {
    return new URL(text);
  } catch {
    throw new PullError(`'${text}' is no URL`);
  }
}

/** https://hub/owner/name[/tree|blob|resolve/<revision>[/<file>]]; undefined for any other URL. */
function fromHubUrl(url: URL, endpoint: string): HubSource | undefined {
  const prefix = [endpoint, PUBLIC_HUB].find((hub) => url.href.startsWith(`${hub}/`));
  if (prefix === undefined) return undefined;
  const path = url.href.slice(prefix.length + 1).replace(/[?#].*$/s, '');
  const parts = path.split('/').filter((part) => part !== '');
  const [owner = '', name = '', view, revision, ...file] = parts.map(decodeURIComponent);
  const repository = `${owner}/${name}`;
  const isView = view === undefined || (/^(?:tree|blob|resolve)$/.test(view) && revision !== undefined);
  if (!REPOSITORY.test(repository) || !isView) return undefined;
  return { kind: 'hub', repository, revision, pattern: file.length === 0 ? undefined : file.join('/') };
}

/** The name of the model when the user gives none: the repository's or the file's, without what only says the format. */
export function defaultNameOf(source: Source): string {
  const last =
    source.kind === 'hub'
      ? source.repository.slice(source.repository.lastIndexOf('/') + 1)
      : fileNameOf(source.url).replace(/\.(?:gguf|onnx)$/i, '');
  return last.replace(/-\d{5}-of-\d{5}$/, '').replace(/[-_.](?:gguf|onnx)$/i, '');
}

export function fileNameOf(url: URL): string {
  return decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
}

/** Throws unless a directory of that name is a model to the server. */
export function checkModelName(name: string): string {
  if (!/^[^./\\\s][^/\\\s]*$/.test(name)) {
    throw new PullError(
      `'${name}' cannot be the name of a model; choose another with --name (no slash, no space, no dot in front)`,
    );
  }
  return name;
}
