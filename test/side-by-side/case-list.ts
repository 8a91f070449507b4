// Every case, in the order in which they are played: what a step leaves behind, the next one finds. Steps that a real
// Triton never answers come last, each to a model of its own.
import { type Case, stepCases, stepRequest, streamCases } from './cases.ts';
import { datatypeCases, tensorCases } from './tensor-cases.ts';

/** Models that others call. */
export const CALLED = ['counter', 'identity', 'requests'];

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

const PARAMETERS = { text: 'é', yes: true, no: false, int: -3 };
const attributes = (more: object) => stepRequest('requests', 'attributes', more);

const requests: readonly Case[] = [
  ...stepCases('requests', 'http', 'attributes sets_flags release_flags unknown_release_flags'),
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
    'sends_final sends_then_final sends_from_thread sends_error rules notes same_sender',
  ),
  ...stepCases('senders', 'grpc', 'sends_final sends_error sends_from_thread'),
];

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
  ...['complete_refused', 'complete_nothing', 'complete_dict'].map(
    (model): Case => ({ id: `completion.${model}`, exchanges: [{ kind: 'load', model }] }),
  ),
  ...stepCases(
    'configs',
    'http',
    'batch_size dynamic_batching inputs outputs transaction_policy by_name types type_of_bool byte_tensors constants names',
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
  ...['init_raises', 'init_model_exception', 'init_import', 'no_class', 'no_execute', 'wrong_syntax'].map(
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
     many_of_unknown cancelled decoupled_as_one attributes text_correlation_id says by_position refused negative_correlation_id
     refused_parameters memory trace_context own_trace`,
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
    'without_labels',
    'histogram',
    'kinds',
    'refused',
    'deleted_metric',
    'deleted_family',
    'metric_without_family',
  ].map(metricsStep),
  ...stepCases('control', 'http', 'readiness loads_and_unloads loads_with_files'),
];

/** The first that ends a real Triton's model would hide the others. */
const dlpack: readonly Case[] = [
  ...stepCases(
    'dlpack',
    'http',
    `from_numpy to_numpy capsules boolean old_producer with_stream shares_memory of_input no_elements refused
     capsule_twice`,
  ),
];

/** Steps that Triton answers wrongly, late or never, or that do it harm. */
const unanswered: readonly Case[] = [
  ...stepCases('senders', 'http', 'sends_and_returns drops_sender'),
  ...stepCases('senders_raise', 'http', 'after_final'),
  ...streamCases('coroutine_stream', 'raises'),
  ...streamCases('stream', 'raises_after_one'),
  ...stepCases('responses', 'http', 'returns_none_in_list returns_nothing'),
  ...stepCases('senders', 'http', 'sends_without_final'),
  ...stepCases('control', 'http', 'refused'),
  metricsStep('same_family'),
  ...['no_file', 'wrong_file_name'].map(
    (model): Case => ({ id: `lifecycle.${model}`, exchanges: [{ kind: 'load', model }] }),
  ),
  { id: 'completion.complete_control', exchanges: [{ kind: 'load', model: 'complete_control' }] },
  // The server itself dies.
  ...stepCases('bls', 'http', 'not_received own_is_cancelled'),
];

/** Each is played on a server of its own: what a step does to a real Triton must not be seen in another theme. */
export const GROUPS: readonly (readonly Case[])[] = [
  [...datatypeCases, ...tensorCases, ...requests, ...responses, ...senders, ...stream, ...coroutines],
  [...completion, ...lifecycle],
  calls,
  server,
  ...[...dlpack, ...unanswered].map((one) => [one]),
];

export const CASES: readonly Case[] = GROUPS.flat();
