// Every case, in the order in which they are played: what a step leaves behind, the next one finds. Steps that a real
// Triton never answers come last, each to a model of its own.
import { type Case, type CaseInput, stepCases, stepRequest, streamCases } from './cases.ts';

/** These are loaded by cases, or never. */
export const LOADED_LATER = [
  'complete',
  'complete_control',
  'complete_decoupled',
  'complete_dict',
  'complete_nothing',
  'complete_refused',
  'init_import',
  'init_model_exception',
  'init_raises',
  'lifecycle',
  'lifecycle_raises',
  'no_class',
  'no_execute',
  'no_file',
  'other_file',
  'wrong_file_name',
  'wrong_syntax',
];

const DATATYPES: readonly Omit<CaseInput, 'name'>[] = [
  { datatype: 'BOOL', shape: [3], data: [true, false, true] },
  { datatype: 'UINT8', shape: [2], data: [0, 255] },
  { datatype: 'UINT16', shape: [2], data: [0, 65535] },
  { datatype: 'UINT32', shape: [2], data: [0, 4294967295] },
  { datatype: 'UINT64', shape: [2], data: [0, 9007199254740991] },
  { datatype: 'INT8', shape: [2], data: [-128, 127] },
  { datatype: 'INT16', shape: [2], data: [-32768, 32767] },
  { datatype: 'INT32', shape: [2], data: [-2147483648, 2147483647] },
  { datatype: 'INT64', shape: [2], data: [-9007199254740991, 9007199254740991] },
  { datatype: 'FP32', shape: [3], data: [-0.5, 1e-8, 3] },
  { datatype: 'FP64', shape: [2], data: [-0.1, 1e300] },
  { datatype: 'BYTES', shape: [4], data: ['', 'é', '日本', 'a b'] },
];
/** What JSON cannot say. */
const RAW_DATATYPES: readonly Omit<CaseInput, 'name'>[] = [
  { datatype: 'FP16', shape: [3], hex: '003c00c0007c' },
  { datatype: 'BF16', shape: [2], hex: '803f00c0' },
  { datatype: 'UINT64', shape: [1], hex: 'ffffffffffffffff' },
  { datatype: 'FP32', shape: [3], hex: '0000c07f0000807f000080ff' },
  { datatype: 'BYTES', shape: [2], hex: '0200000000ff0100000080' },
];

const inputName = (datatype: string) => `IN_${datatype === 'BYTES' ? 'STRING' : datatype}`;

function datatypeCases(
  kind: 'http' | 'grpc',
  inputs: readonly Omit<CaseInput, 'name'>[],
  what: string,
): Case[] {
  return inputs.map((input) => ({
    id: `datatypes.${kind}.${input.datatype.toLowerCase()}${what}`,
    exchanges: [
      { kind, request: { model: 'datatypes', inputs: [{ name: inputName(input.datatype), ...input }] } },
    ],
  }));
}

const datatypes: readonly Case[] = [
  ...datatypeCases('http', DATATYPES, ''),
  ...datatypeCases('grpc', DATATYPES, ''),
  ...datatypeCases('grpc', RAW_DATATYPES, '_raw'),
  ...datatypeCases(
    'grpc',
    [...DATATYPES, ...RAW_DATATYPES.slice(0, 2)].map(({ datatype }) => ({ datatype, shape: [0], hex: '' })),
    '_empty',
  ),
  {
    id: 'datatypes.http.several',
    exchanges: [
      {
        kind: 'http',
        request: {
          model: 'datatypes',
          inputs: [
            { name: 'RANK2', datatype: 'INT32', shape: [2, 2], data: [1, 2, 3, 4] },
            { name: 'IN_FP32', datatype: 'FP32', shape: [1], data: [1] },
            { name: 'IN_BOOL', datatype: 'BOOL', shape: [1], data: [true] },
          ],
        },
      },
    ],
  },
];

const tensors = [
  ...stepCases(
    'tensors',
    'http',
    `transposed sliced reversed fortran broadcast read_only empty scalar another_datatype another_shape not_texts
     fixed_bytes texts_transposed no_texts says is_same_memory refused input_values`,
  ),
  ...stepCases('tensors', 'grpc', 'transposed empty scalar another_datatype another_shape texts no_texts'),
];

const PARAMETERS = { text: 'é', yes: true, no: false, int: -3 };
const attributes = (more: object) => stepRequest('requests', 'attributes', more);

const requests: readonly Case[] = [
  ...stepCases('requests', 'http', 'attributes sets_flags release_flags'),
  ...[
    { name: 'everything', more: { id: 'r1', outputs: ['SEEN'], parameters: PARAMETERS } },
    { name: 'outputs', more: { outputs: ['MORE', 'SEEN'] } },
    { name: 'sequence', more: { parameters: { sequence_id: 7, sequence_start: true } } },
    { name: 'sequence_end', more: { parameters: { sequence_id: 7, sequence_end: true } } },
    {
      name: 'sequence_text',
      more: { parameters: { sequence_id: 'abc', sequence_start: true, sequence_end: true } },
    },
    { name: 'timeout', more: { parameters: { timeout: 123456 } } },
    { name: 'priority', more: { parameters: { priority: 1 } } },
    { name: 'double', more: { parameters: { double: 2.5 } } },
  ].flatMap(({ name, more }): Case[] => [
    { id: `requests.http.${name}`, exchanges: [{ kind: 'http', request: attributes(more) }] },
    { id: `requests.grpc.${name}`, exchanges: [{ kind: 'grpc', request: attributes(more) }] },
  ]),
  {
    id: 'requests.cancelled',
    exchanges: [
      { kind: 'cancel', request: stepRequest('requests', 'waits'), afterMs: 300 },
      { kind: 'http', request: stepRequest('requests', 'was_cancelled') },
    ],
  },
];

const CODES =
  'error_unknown error_internal error_not_found error_invalid_arg error_unavailable error_unsupported error_already_exists error_cancelled';

const responses: readonly Case[] = [
  ...stepCases(
    'responses',
    'http',
    `all_outputs one_output no_outputs extra_output same_output_twice error error_and_outputs empty_error ${CODES}
     parameters no_parameters says parameters_text refused refused_parameters raises raises_deeper
     raises_without_text raises_model_exception raises_chained raises_own_class raises_many_lines returns_text
     returns_tuple returns_response returns_empty_list returns_two returns_number_in_list
     returns_tensor_in_list returns_generator`,
  ),
  ...stepCases(
    'responses',
    'grpc',
    `all_outputs no_outputs extra_output parameters raises returns_two ${CODES}`,
  ),
  {
    id: 'responses.http.requested',
    exchanges: [
      { kind: 'http', request: stepRequest('responses', 'all_outputs', { outputs: ['A'] }) },
      { kind: 'http', request: stepRequest('responses', 'one_output', { outputs: ['A'] }) },
      { kind: 'http', request: stepRequest('responses', 'extra_output', { outputs: ['OTHER'] }) },
    ],
  },
];

const senders: readonly Case[] = [
  ...stepCases(
    'senders',
    'http',
    'sends_final sends_then_final sends_from_thread sends_error rules notes same_sender sends_without_final notes',
  ),
  ...stepCases('senders', 'grpc', 'sends_final sends_error sends_from_thread'),
].filter(({ id }, index, all) => all.findIndex((other) => other.id === id) === index);

const stream: readonly Case[] = [
  ...streamCases(
    'stream',
    `none one one_then_final many many_last_final errors_between only_error empty_response thread rules notes
     parameters raises_at_once returns_list`,
  ),
  ...stepCases('stream', 'http', 'one none'),
  ...stepCases('stream', 'grpc', 'one'),
  {
    id: 'stream.stream.final_response_wanted',
    exchanges: ['none', 'one', 'one_then_final', 'many_last_final', 'only_error'].map((step) => ({
      kind: 'stream',
      requests: [
        stepRequest('stream', step, { id: 'r', parameters: { triton_enable_empty_final_response: true } }),
      ],
    })),
  },
  {
    id: 'stream.stream.several_requests',
    exchanges: [
      {
        kind: 'stream',
        requests: [stepRequest('stream', 'one', { id: 'a' }), stepRequest('stream', 'many', { id: 'b' })],
      },
    ],
  },
];

const coroutines: readonly Case[] = [
  ...stepCases('coroutine', 'http', 'sleeps gathers raises returns_number nested_loop'),
  ...streamCases('coroutine_stream', 'counts'),
  {
    id: 'coroutine_stream.side_by_side',
    exchanges: [
      {
        kind: 'stream',
        requests: [
          stepRequest('coroutine_stream', 'waits_for_next'),
          stepRequest('coroutine_stream', 'next'),
        ],
      },
    ],
  },
];

const completion: readonly Case[] = [
  ...['complete', 'complete_decoupled'].map(
    (model): Case => ({
      id: `completion.${model}`,
      exchanges: [
        { kind: 'load', model },
        { kind: 'config', model },
      ],
    }),
  ),
  {
    id: 'completion.completed_stream',
    exchanges: [{ kind: 'stream', requests: [stepRequest('complete_decoupled', '')] }],
  },
  ...['complete_refused', 'complete_nothing', 'complete_dict', 'complete_control'].map(
    (model): Case => ({ id: `completion.${model}`, exchanges: [{ kind: 'load', model }] }),
  ),
  ...stepCases(
    'configs',
    'http',
    'batch_size dynamic_batching inputs outputs transaction_policy by_name types byte_tensors constants names',
  ),
];

const NOTES = { kind: 'http', request: stepRequest('lifecycle', 'notes') } as const;

const lifecycle: readonly Case[] = [
  {
    id: 'lifecycle.order',
    exchanges: [
      { kind: 'load', model: 'lifecycle' },
      { kind: 'http', request: stepRequest('lifecycle', 'arguments') },
      NOTES,
      { kind: 'unload', model: 'lifecycle' },
      { kind: 'load', model: 'lifecycle' },
      NOTES,
    ],
  },
  {
    id: 'lifecycle.finalize_raises',
    exchanges: [
      { kind: 'load', model: 'lifecycle_raises' },
      { kind: 'http', request: stepRequest('lifecycle_raises', 'answers') },
      { kind: 'unload', model: 'lifecycle_raises' },
      { kind: 'load', model: 'lifecycle_raises' },
      { kind: 'http', request: stepRequest('lifecycle_raises', 'answers') },
    ],
  },
  ...[
    'init_raises',
    'init_model_exception',
    'init_import',
    'no_class',
    'no_execute',
    'wrong_syntax',
    'no_file',
    'wrong_file_name',
  ].map(
    (model): Case => ({
      id: `lifecycle.${model}`,
      exchanges: [
        { kind: 'load', model },
        { kind: 'ready', model },
      ],
    }),
  ),
  {
    id: 'lifecycle.other_file',
    exchanges: [
      { kind: 'load', model: 'other_file' },
      { kind: 'http', request: stepRequest('other_file', 'names') },
      { kind: 'unload', model: 'other_file' },
    ],
  },
];

const calls: readonly Case[] = [
  ...stepCases('init_bls', 'http', 'said'),
  ...stepCases(
    'bls',
    'http',
    `one version no_elements unknown_model wrong_inputs wrong_outputs no_output_names error_of_model
     exception_of_model same_request_twice keeps_values threads event_loop many many_with_error many_again many_of_one
     many_of_unknown cancelled decoupled_as_one attributes text_correlation_id says by_position refused
     refused_parameters memory trace_context`,
  ),
  ...stepCases('bls_coroutine', 'http', 'one gathered unknown many decoupled_as_one'),
];

const metricsStep = (step: string): Case => ({
  id: `metrics.${step}`,
  exchanges: [
    { kind: 'http', request: stepRequest('metrics', step) },
    { kind: 'metrics', prefix: 'side_' },
  ],
});

const server: readonly Case[] = [
  {
    id: 'logger.says',
    exchanges: [
      { kind: 'http', request: stepRequest('logger', 'says') },
      { kind: 'log', text: 'side-by-side:' },
    ],
  },
  ...stepCases('logger', 'http', 'refused'),
  ...[
    'counts',
    'gauges_up_and_down',
    'same_metric',
    'same_family',
    'without_labels',
    'kinds',
    'refused',
    'deleted_metric',
    'deleted_family',
    'metric_without_family',
  ].map(metricsStep),
  ...stepCases('control', 'http', 'loads_and_unloads loads_with_files refused'),
  ...stepCases(
    'dlpack',
    'http',
    `from_numpy to_numpy capsules boolean old_producer with_stream shares_memory of_input no_elements refused
     capsule_twice`,
  ),
];

const unanswered: readonly Case[] = [
  ...stepCases('senders', 'http', 'sends_and_returns drops_sender'),
  ...stepCases('senders_raise', 'http', 'after_final'),
  ...streamCases('coroutine_stream', 'raises'),
  ...streamCases('stream', 'raises_after_one'),
  ...stepCases('responses', 'http', 'returns_none_in_list returns_nothing'),
];

export const CASES: readonly Case[] = [
  ...datatypes,
  ...tensors,
  ...requests,
  ...responses,
  ...senders,
  ...stream,
  ...coroutines,
  ...completion,
  ...lifecycle,
  ...calls,
  ...server,
  ...unanswered,
];
