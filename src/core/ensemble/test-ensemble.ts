// An ensemble over models that answer when the test says so. Used only by tests.

import { DEFAULT_METRICS_CONFIG } from '../../domain/metrics-config.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import type { InferRequest, InferResponse, Parameters, ResponseSink } from '../../domain/request.ts';
import type { RequestTrace } from '../../domain/request-trace.ts';
import type { StatusError } from '../../domain/status.ts';
import { Cancellation } from '../../lib/cancellation.ts';
import { SimulatedClock } from '../../lib/clock.ts';
import { parseModelConfig } from '../../wire/pbtxt/parse-model-config.ts';
import type { InferCall } from '../infer.ts';
import type { ServedModel } from '../model/served-model.ts';
import { makeRequest } from '../scheduler/test-entry.ts';
import { MetricsRegistry } from '../stats/metrics-registry.ts';
import { ModelStats } from '../stats/model-stats.ts';
import { Ensemble, type EnsembleLimits } from './ensemble.ts';
import { planEnsemble } from './load-ensemble.ts';

/** Keeps what it is asked; the test answers. */
export class ManualModel implements ServedModel {
  readonly config: ModelConfig;
  readonly name: string;
  readonly version = 1;
  readonly maxBatchSize: number;
  readonly isDecoupled: boolean;
  readonly inputs = [];
  readonly outputs = [];
  readonly isHealthy = true;
  readonly failure = undefined;
  readonly calls: InferCall[] = [];
  /** Thrown at the next request. */
  refusal: StatusError | undefined;

  constructor(config: ModelConfig) {
    this.config = config;
    this.name = config.name;
    this.maxBatchSize = config.max_batch_size;
    this.isDecoupled = config.model_transaction_policy?.decoupled ?? false;
  }

  get stats(): ModelStats {
    throw new Error('a manual model has no statistics');
  }

  get openCount(): number {
    return this.calls.length;
  }

  labelsOf(): undefined {
    return undefined;
  }

  infer(call: InferCall): void {
    if (this.refusal !== undefined) throw this.refusal;
    this.calls.push(call);
  }

  async unload(): Promise<void> {}

  abandon(): void {}

  /** The newest request. */
  get last(): InferCall {
    return this.calls.at(-1)!;
  }

  /** One response to the call, with each requested output holding one byte; false when it is paused. */
  respond(
    call: InferCall,
    value: number,
    extra: { shape?: number[]; parameters?: Parameters } = {},
  ): boolean {
    return call.sink.send(
      {
        modelName: this.name,
        modelVersion: 1,
        id: call.request.id,
        parameters: extra.parameters,
        outputs: call.request.requestedOutputs.map((name) => ({
          name,
          datatype: 'UINT8',
          shape: extra.shape ?? (this.maxBatchSize > 0 ? [1, 1] : [1]),
          data: [Buffer.from([value])],
          byteLength: 1,
        })),
      },
      !this.isDecoupled,
    );
  }

  answer(call: InferCall, value: number, extra: { shape?: number[]; parameters?: Parameters } = {}): void {
    this.respond(call, value, extra);
    call.sink.finish();
  }
}

/** What a client gets, as a list: values by output, then 'finish' or the error. */
export class ListSink implements ResponseSink {
  readonly events: (Record<string, number> | string)[] = [];
  readonly responses: InferResponse[] = [];
  hasRoom = true;
  onRoom: (() => void) | undefined;

  send(response: InferResponse): boolean {
    this.responses.push(response);
    this.events.push(Object.fromEntries(response.outputs.map(({ name, data }) => [name, data[0]![0]!])));
    return this.hasRoom;
  }

  sendError(error: StatusError): boolean {
    this.events.push(`one error: ${error.message}`);
    return true;
  }

  finish(): void {
    this.events.push('finish');
  }

  fail(error: StatusError): void {
    this.events.push(`${error.code}: ${error.message}`);
  }
}

/** `model NAME { inputs } -> { outputs }` in a few words; every tensor is one byte. */
export function modelConfig(
  name: string,
  options: { in: string[]; out: string[]; isDecoupled?: boolean; maxBatchSize?: number; optional?: string[] },
): ModelConfig {
  const inputs = options.in.map((input) => {
    const optional = options.optional?.includes(input) ? 'optional: true' : '';
    return `input { name: "${input}" data_type: TYPE_UINT8 dims: 1 ${optional} }`;
  });
  const outputs = options.out.map((output) => `output { name: "${output}" data_type: TYPE_UINT8 dims: 1 }`);
  return parseModelConfig(
    [
      `name: "${name}" max_batch_size: ${options.maxBatchSize ?? 0}`,
      ...inputs,
      ...outputs,
      `model_transaction_policy { decoupled: ${options.isDecoupled ?? false} }`,
    ].join('\n'),
  );
}

export interface StepText {
  readonly model: string;
  /** Input or output of the model, and ensemble tensor. */
  readonly in: Record<string, string>;
  readonly out: Record<string, string>;
  readonly version?: number;
}

export function ensembleConfig(
  io: { in: string[]; out: string[]; maxBatchSize?: number; optional?: string[]; maxInflight?: number },
  steps: readonly StepText[],
): ModelConfig {
  return {
    ...modelConfig('e', io),
    platform: 'ensemble',
    ensemble_scheduling: {
      step: steps.map((step) => ({
        model_name: step.model,
        model_version: step.version ?? -1,
        input_map: step.in,
        output_map: step.out,
        model_namespace: '',
      })),
      max_inflight_requests: io.maxInflight ?? 0,
    },
  };
}

export interface TestEnsemble {
  readonly ensemble: Ensemble;
  readonly clock: SimulatedClock;
  readonly models: Map<string, ServedModel>;
  model(name: string): ManualModel;
  infer(
    values: Record<string, number>,
    fields?: Partial<InferRequest>,
    more?: Pick<InferCall, 'ancestors'> & { readonly trace?: RequestTrace },
  ): { sink: ListSink; cancel(): void };
}

export function createEnsemble(
  config: ModelConfig,
  parts: readonly (ModelConfig | Ensemble)[],
  limits?: EnsembleLimits,
): TestEnsemble {
  const clock = new SimulatedClock();
  const models = new Map<string, ServedModel>(
    parts.map((part) => [part.name, part instanceof Ensemble ? part : new ManualModel(part)]),
  );
  const find = (name: string) => models.get(name);
  const steps = config.ensemble_scheduling!.step.map((step) => find(step.model_name)!);
  const plan = planEnsemble(config, steps);
  const stats = new ModelStats({
    name: config.name,
    version: 1,
    metricTags: {},
    config: DEFAULT_METRICS_CONFIG,
    isCached: false,
    registry: new MetricsRegistry(clock),
  });
  const options = { config, version: 1, plan, labels: new Map(), models: steps, stats, clock, find };
  const ensemble = new Ensemble(limits === undefined ? options : { ...options, limits });
  return {
    ensemble,
    clock,
    models,
    model: (name) => models.get(name) as ManualModel,
    infer(values, fields = {}, more = {}) {
      const sink = new ListSink();
      const cancellation = new Cancellation();
      const inputs = Object.entries(values).map(([name, value]) => ({
        name,
        datatype: 'UINT8' as const,
        shape: config.max_batch_size > 0 ? [1, 1] : [1],
        data: [Buffer.from([value])],
        byteLength: 1,
      }));
      const request = makeRequest({ inputs, ...fields });
      ensemble.infer({ request, sink, cancellation, trace: undefined, ...more });
      return { sink, cancel: () => cancellation.cancel() };
    },
  };
}
