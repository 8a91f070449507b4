// The version in a URL: digits, as the route has checked; too many of them are an error of their own.

import { invalidArgument } from '../../domain/status.ts';

const INT64_MAX = 2n ** 63n - 1n;

export function parseVersion(digits: string): number {
  if (digits.length < 16) return Number(digits);
  if (BigInt(digits) > INT64_MAX) {
    throw invalidArgument(
      `failed to get model version from specified version string '${digits}' (details: stol), version should be an integral value > 0`,
    );
  }
  return Number(digits);
}
