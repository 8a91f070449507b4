// The version text of a gRPC request, read as C++ std::stol reads it: what follows the digits is ignored.

import { type Catalog, LATEST_VERSION } from '../../core/repository/catalog.ts';
import { invalidArgument } from '../../domain/status.ts';
import { findLabelled } from '../version-label.ts';

const INT64_MAX = 2n ** 63n - 1n;

/** A label of the model, or a number; the newest when the text is empty. */
export function versionOf(catalog: Catalog, asked: { model: string; version: string }): number {
  return findLabelled(catalog, asked) ?? parseModelVersion(asked.version);
}

export function parseModelVersion(text: string): number {
  if (text === '') return LATEST_VERSION;
  const digits = /^[ \t\n\v\f\r]*([+-]?[0-9]+)/.exec(text)?.[1];
  const value = digits === undefined ? undefined : BigInt(digits.replace('+', ''));
  if (value === undefined || value > INT64_MAX || value < -INT64_MAX - 1n) {
    throw invalidArgument(
      `failed to get model version from specified version string '${text}' (details: stol), version should be an integral value > 0`,
    );
  }
  if (value < 0n) {
    throw invalidArgument(
      `invalid model version specified '${text}' , version should be an integral value > 0`,
    );
  }
  return Number(value);
}
