// The rules of `sequence_batching`: control tensors, and the bounds of the two strategies. Called by
// validate-config.ts; throws INVALID_ARG with Triton's texts.

import type { ModelConfig, ModelSequenceBatching, SequenceControl } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

/** In the order in which Triton checks; the correlation id is the only one that is no flag. */
const FLAG_CONTROLS = ['CONTROL_SEQUENCE_START', 'CONTROL_SEQUENCE_END', 'CONTROL_SEQUENCE_READY'];
const CORRID_CONTROL = 'CONTROL_SEQUENCE_CORRID';
const CORRID_TYPES: ReadonlySet<string> = new Set([
  'TYPE_UINT64',
  'TYPE_INT64',
  'TYPE_UINT32',
  'TYPE_INT32',
  'TYPE_STRING',
]);

export function validateSequenceBatching(config: ModelConfig, batching: ModelSequenceBatching): void {
  validateControlTensors(config.name, batching);
  for (const kind of FLAG_CONTROLS) {
    const control = singleControl(config.name, batching, kind);
    if (control !== undefined) validateFlagControl(config.name, control);
  }
  const corrid = singleControl(config.name, batching, CORRID_CONTROL);
  if (corrid !== undefined) validateCorridControl(config.name, corrid);
  validateStrategy(config, batching);
}

function validateControlTensors(modelName: string, batching: ModelSequenceBatching): void {
  const seen = new Set<string>();
  for (const { name } of batching.control_input) {
    if (name === '')
      throw invalidArgument(`sequence batching control tensor must have a name for ${modelName}`);
    if (seen.has(name)) {
      throw invalidArgument(
        `sequence batching control tensor '${name}' is specified for multiple control kinds for ${modelName}`,
      );
    }
    seen.add(name);
  }
}

function singleControl(
  modelName: string,
  batching: ModelSequenceBatching,
  kind: string,
): SequenceControl | undefined {
  const controls = batching.control_input.flatMap((input) => input.control).filter((c) => c.kind === kind);
  if (controls.length > 1) {
    throw invalidArgument(`sequence batching specifies multiple ${kind} tensors for ${modelName}`);
  }
  return controls[0];
}

function validateFlagControl(modelName: string, control: SequenceControl): void {
  const where = `for ${control.kind} for ${modelName}`;
  const given = givenFalseTrue(control);
  if (given.length === 0) {
    throw invalidArgument(
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' ${where}`,
    );
  }
  if (given.length > 1) {
    throw invalidArgument(
      `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' ${where}`,
    );
  }
  const field = given[0]!;
  if (control[field].length !== 2) {
    throw invalidArgument(`sequence batching control '${field}' must have exactly 2 entries ${where}`);
  }
}

function validateCorridControl(modelName: string, control: SequenceControl): void {
  if (givenFalseTrue(control).length > 0) {
    throw invalidArgument(
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' " +
        `for ${control.kind} for ${modelName}`,
    );
  }
  if (!CORRID_TYPES.has(control.data_type)) {
    throw invalidArgument(
      `unexpected data type for control ${control.kind} for ${modelName}. Allowed data types are ` +
        'TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING',
    );
  }
}

function givenFalseTrue(control: SequenceControl) {
  const fields = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const;
  return fields.filter((field) => control[field].length > 0);
}

function validateStrategy(config: ModelConfig, batching: ModelSequenceBatching): void {
  for (const size of batching.oldest?.preferred_batch_size ?? []) {
    if (size <= 0) {
      throw invalidArgument(`sequence batching preferred batch size must be positive for ${config.name}`);
    }
    if (size > config.max_batch_size) {
      throw invalidArgument(
        `sequence batching preferred batch size must be <= max batch size for ${config.name}`,
      );
    }
  }
  // The text says (0.0, but Triton's own test lets 0, the default, pass.
  const utilization = batching.direct?.minimum_slot_utilization ?? 0;
  if (!(utilization >= 0 && utilization <= 1)) {
    throw invalidArgument(
      `sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${config.name}`,
    );
  }
}
