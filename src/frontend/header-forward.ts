// Which request headers, or metadata keys, may not be forwarded as parameters of a request: both protocols refuse
// them alike.

const RESERVED: ReadonlySet<string> = new Set([
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'priority',
  'timeout',
  'headers',
  'binary_data_output',
]);

export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name) || name.startsWith('triton_');
}
