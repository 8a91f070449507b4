// A label where a version is expected: `stable` in place of 3. Both protocols ask here before they read a number, so that
// a text which is neither keeps their own error.

import type { Catalog } from '../core/repository/catalog.ts';

/** Undefined when the text is no label, or the model has none; throws when the model has others. */
export function findLabelled(
  catalog: Catalog,
  asked: { readonly model: string; readonly version: string },
): number | undefined {
  return isLabelLike(asked.version) ? catalog.findLabel(asked.model, asked.version) : undefined;
}

/** Versions begin with a digit, labels never do. */
function isLabelLike(text: string): boolean {
  const first = text.charCodeAt(0);
  return (first >= 0x41 && first <= 0x5a) || (first >= 0x61 && first <= 0x7a) || first === 0x5f;
}
