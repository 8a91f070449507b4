// What the server tells of a request beside its tensors, as far as a llama model asks for it: the parameters and the
// priority. See docs/host-protocol.md, request info.

export interface RequestInfo {
  readonly parameters: Readonly<Record<string, string | number | boolean>>;
  /** 0: not said. */
  readonly priority: number;
}

const NO_INFO: RequestInfo = { parameters: {}, priority: 0 };

export function parseRequestInfo(info: Buffer | undefined): RequestInfo {
  if (info === undefined) return NO_INFO;
  // Doubles may be NaN or infinite there, which no parameter of ours is. Strings are matched to be left alone.
  const text = info
    .toString()
    .replace(/"(?:[^"\\]|\\.)*"|NaN|-?Infinity/g, (match) => (match.startsWith('"') ? match : 'null'));
  const { parameters = {}, priority = 0 } = JSON.parse(text) as Partial<RequestInfo>;
  return { parameters, priority };
}
