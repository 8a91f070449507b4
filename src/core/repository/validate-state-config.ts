// The rules of `sequence_batching.state`: what a sequence may start with. Called by validate-io-config.ts, because Triton
// finds these faults when it loads a version, not when it reads the config; throws INVALID_ARG with Triton's texts.
// The file of an initial state is read, and its size checked, by the host.

import type { SequenceState } from '../../domain/model-config.ts';
import { invalidArgument } from '../../domain/status.ts';

type InitialState = SequenceState['initial_state'][number];

export function validateStates(states: readonly SequenceState[]): void {
  const seen = new Set<string>();
  for (const state of states) {
    const count = state.initial_state.length;
    if (count > 1) {
      throw invalidArgument(
        `initial_state field for state input '${state.input_name}' must contain exactly one or zero element. ` +
          `Found '${count}' elements.`,
      );
    }
    const initial = state.initial_state[0];
    if (initial === undefined) continue;
    validateNaming(state, initial, seen);
    validateInitialDims(state, initial);
    if (initial.zero_data === undefined && initial.data_file === undefined) {
      throw invalidArgument(
        `initial_state setting expects state'${state.input_name}' to have state_data set`,
      );
    }
  }
}

function validateNaming(state: SequenceState, initial: InitialState, seen: Set<string>): void {
  if (initial.data_type !== state.data_type) {
    throw invalidArgument(
      `The data type used for 'initial_state' field of state '${state.input_name}' does not match the state data type.`,
    );
  }
  if (initial.name === '') {
    throw invalidArgument(
      `Field 'name' must be set when using initial_state for state input '${state.input_name}'.`,
    );
  }
  if (seen.has(state.input_name)) {
    throw invalidArgument(`State input name '${state.input_name}' specified more than once.`);
  }
  seen.add(state.input_name);
}

function validateInitialDims(state: SequenceState, initial: InitialState): void {
  if (initial.dims.length !== state.dims.length) {
    throw invalidArgument(
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input " +
        `'${state.input_name}'. ${initial.dims.length} != ${state.dims.length}`,
    );
  }
  initial.dims.forEach((dim, i) => {
    const declared = state.dims[i]!;
    if (dim === -1) {
      throw invalidArgument(
        `'initial_state' field for state input name '${state.input_name}' contains variable dimensions.`,
      );
    }
    if (declared !== -1 && dim !== declared) {
      throw invalidArgument(
        `'initial_state' dim for input name '${state.input_name}' doesn't match 'state' dim description. ` +
          `${dim} != ${declared}`,
      );
    }
  });
}
