// How the server traces when it starts: what --trace-config says.
// Parsed by cli, read by core/trace.

export type TraceLevel = 'TIMESTAMPS' | 'TENSORS';
export type TraceMode = 'triton' | 'opentelemetry';

export interface TraceOptions {
  readonly mode: TraceMode;
  /** Empty: off. */
  readonly levels: readonly TraceLevel[];
  /** Every n-th request; 0 means only those that bring an OpenTelemetry context. */
  readonly rate: number;
  /** -1 is without limit. */
  readonly count: number;
  /** Empty: none given. */
  readonly file: string;
  /** Traces in one file; 0 means all in one. */
  readonly logFrequency: number;
  /** Settings of the opentelemetry mode in the order given; `resource` may come several times. */
  readonly opentelemetry: readonly (readonly [setting: string, value: string])[];
}
