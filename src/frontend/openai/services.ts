// What the OpenAI API needs of the server behind it. server.ts puts it together; endpoints only read it.

import type { RestrictedApis, ServerServices } from '../services.ts';
import type { ApiKeys } from './api-keys.ts';

export interface OpenAiServices
  extends Pick<ServerServices, 'catalog' | 'logger' | 'trace' | 'jsonThread' | 'infer' | 'isReady'> {
  /** The groups of --http-restricted-api. */
  readonly restrictedApis: RestrictedApis;
  /** --http-max-input-size */
  readonly inputBytesMax: number;
  /** Undefined: anybody is served. */
  readonly apiKeys: ApiKeys | undefined;
  /** Where the chat templates of models are looked for. */
  readonly repositoryPaths: readonly string[];
  readonly metrics: { readonly contentType: string; render(): string };
}
