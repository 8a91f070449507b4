// The version in a URL: a label, or digits, as the route has checked; too many of them are an error of their own.

import { type Catalog, LATEST_VERSION } from '../../core/repository/catalog.ts';
import { invalidArgument } from '../../domain/status.ts';
import { findLabelled } from '../version-label.ts';

const INT64_MAX = 2n ** 63n - 1n;

/** What a target names; the newest when it names none. */
export function versionOf(catalog: Catalog, target: { model: string; version: string }): number {
  if (target.version === '') return LATEST_VERSION;
  return findLabelled(catalog, target) ?? parseVersion(target.version);
}

export function parseVersion(digits: string): number {
  if (digits.length < 16) return Number(digits);
  if (BigInt(digits) > INT64_MAX) {
    throw invalidArgument(
      `failed to get model version from specified version string '${digits}' (details: stol), version should be an integral value > 0`,
    );
  }
  return Number(digits);
}
