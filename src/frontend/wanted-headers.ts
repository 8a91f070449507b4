// The headers, or metadata, that a model wants to see with its requests: routers are steered by them. Frontends call it for
// models that want any, so that all others pay one comparison.

/** `find` is asked for names in lower case; a header that is not there is left out. */
export function pickHeaders(
  wanted: readonly string[],
  find: (name: string) => string | undefined,
): ReadonlyMap<string, string> {
  const picked = new Map<string, string>();
  for (const name of wanted) {
    const value = find(name);
    if (value !== undefined) picked.set(name, value);
  }
  return picked;
}
