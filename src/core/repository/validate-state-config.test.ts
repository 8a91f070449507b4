import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SequenceState } from '../../domain/model-config.ts';
import { validateStates } from './validate-state-config.ts';

type InitialState = SequenceState['initial_state'][number];

function makeState(dims: number[], ...initial: Partial<InitialState>[]): SequenceState {
  return {
    input_name: 'S',
    output_name: 'T',
    data_type: 'TYPE_FP32',
    dims,
    initial_state: initial.map((fields) => ({
      data_type: 'TYPE_FP32',
      dims: [2],
      name: 'first',
      ...fields,
    })),
    use_same_buffer_for_input_output: true,
    use_growable_memory: true,
  };
}

const ZERO = { zero_data: true };

test('states with and without an initial state pass', () => {
  validateStates([makeState([2]), makeState([2], ZERO), { ...makeState([-1], ZERO), input_name: 'U' }]);
});

test('a wrong initial state is refused in the words of Triton', () => {
  const cases: [SequenceState[], string][] = [
    [
      [makeState([2], ZERO, ZERO)],
      "initial_state field for state input 'S' must contain exactly one or zero element. Found '2' elements.",
    ],
    [
      [makeState([2], { ...ZERO, data_type: 'TYPE_INT32' })],
      "The data type used for 'initial_state' field of state 'S' does not match the state data type.",
    ],
    [
      [makeState([2], { ...ZERO, name: '' })],
      "Field 'name' must be set when using initial_state for state input 'S'.",
    ],
    [[makeState([2], ZERO), makeState([2], ZERO)], "State input name 'S' specified more than once."],
    [
      [makeState([2, 1], ZERO)],
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'S'. 1 != 2",
    ],
    [
      [makeState([2], { ...ZERO, dims: [-1] })],
      "'initial_state' field for state input name 'S' contains variable dimensions.",
    ],
    [
      [makeState([3], ZERO)],
      "'initial_state' dim for input name 'S' doesn't match 'state' dim description. 2 != 3",
    ],
    [[makeState([2], {})], "initial_state setting expects state'S' to have state_data set"],
  ];
  for (const [states, message] of cases) {
    assert.throws(() => validateStates(states), { code: 'INVALID_ARG', message });
  }
});
