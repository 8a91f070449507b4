// Compares two normal forms and lists every place where they differ. Pure.
import { showJson } from './json.ts';
import { type Normal, type NormalObject, SLACK } from './normal-form.ts';

export interface Difference {
  readonly path: string;
  readonly expected: string;
  readonly received: string;
}

export function differences(want: Normal, got: Normal, path = ''): Difference[] {
  if (isNormalObject(want) && isNormalObject(got)) return objectDifferences(want, got, path);
  if (Array.isArray(want) && Array.isArray(got) && want.length === got.length) {
    return want.flatMap((value, i) => differences(value, got[i] ?? null, `${path}[${i}]`));
  }
  // bigint and number never equal each other here: 1 and 1.0 are different answers.
  const isSame = !isComposite(want) && Object.is(plusZero(want), plusZero(got));
  return isSame ? [] : [{ path: path || '(body)', expected: showJson(want), received: showJson(got) }];
}

function objectDifferences(want: NormalObject, got: NormalObject, path: string): Difference[] {
  const at = (key: string) => (path === '' ? key : `${path}.${key}`);
  const out: Difference[] = [];
  for (const [key, value] of Object.entries(want)) {
    const other = got[key];
    if (other === undefined) out.push({ path: at(key), expected: showJson(value), received: '(absent)' });
    else out.push(...differences(value, other, at(key)));
  }
  if (want[SLACK] === 'superset') return out;
  for (const [key, value] of Object.entries(got)) {
    if (want[key] !== undefined || (want[SLACK] === 'defaults' && isDefault(value))) continue;
    out.push({ path: at(key), expected: '(absent)', received: showJson(value) });
  }
  return out;
}

function isComposite(value: Normal): boolean {
  return typeof value === 'object' && value !== null;
}

function isNormalObject(value: Normal): value is NormalObject {
  return isComposite(value) && !Array.isArray(value);
}

/** -0.0 and 0.0 are the same number; NaN is itself. */
function plusZero(value: Normal): Normal {
  return value === 0 ? 0 : value;
}

function isDefault(value: Normal): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isNormalObject(value)) return Object.values(value).every(isDefault);
  return [null, false, 0n, 0, '', 'FORMAT_NONE'].includes(value as never);
}
