// Does what MODE names, right or wrong.
import { defineModel, ModelError, Tensor } from 'nereid/model';

let calls;

const text = (...lines) => ({ outputs: [Tensor.fromStrings('OUT', lines)] });

const MODES = {
  throws: () => {
    throw new TypeError('no cheese');
  },
  rejects: async () => {
    throw new RangeError('later');
  },
  refuses: () => {
    throw new ModelError('INVALID_ARG', 'not like this');
  },
  returns_error: () => [new ModelError('UNAVAILABLE', 'come back later')],
  wrong_count: () => [text('a'), text('b')],
  wrong_return: () => 'text',
  no_outputs: () => [{}],
  wrong_name: () => [{ outputs: [Tensor.fromStrings('Z', ['a'])] }],
  wrong_datatype: () => [{ outputs: [Tensor.from('OUT', Int32Array.of(1))] }],
  wrong_shape: () => [{ outputs: [Tensor.fromStrings('OUT', ['a'], [1, 1])] }],
  wrong_input: ([request]) => [request.input('ABSENT')],
  not_decoupled: ([request]) => [request.sender()],
  exits: () => process.exit(7),
  parameters: () => [{ ...text('p'), parameters: { i: 1, d: 0.5, s: 't', b: true } }],
  waits: ([request]) =>
    new Promise((_resolve, reject) => {
      console.log('waits for the end');
      request.signal.addEventListener('abort', () => {
        console.log(`heard the end: ${request.isCancelled}`);
        reject(request.signal.reason);
      });
    }),
  ready: async (_, context) => {
    const answers = await Promise.all([
      context.isModelReady('echo'),
      context.isModelReady('echo', 9),
      context.isModelReady('absent'),
    ]);
    return [text(...answers.map(String))];
  },
  absent_model: async (_, context) => {
    await context.infer('absent', { inputs: [] });
  },
  aborted_call: async (_, { infer }) => {
    const inputs = [Tensor.fromStrings('MODE', ['waits'])];
    try {
      await infer('slow', { inputs, signal: AbortSignal.timeout(100) });
    } catch (error) {
      return [text(error.name)];
    }
  },
  itself: (_, { infer }) => infer('modes', { inputs: [Tensor.fromStrings('MODE', ['ready'])] }),
  control: async (_, context) => {
    await context.unloadModel('upper');
    const isReady = await context.isModelReady('upper');
    await context.loadModel('upper');
    return [text(String(isReady), String(await context.isModelReady('upper')))];
  },
  metric: async (_, context) => {
    for (let i = 0; i < 3; i++) calls.increment();
    const gauge = context.metrics.gauge('node_model_level', { help: 'a level' });
    gauge.set(2.5);
    context.metrics.histogram('node_model_size', { buckets: [1, 10] }).observe(5);
    return [text(String(await calls.value()), String(await gauge.value()))];
  },
};

export default defineModel({
  config: {
    inputs: [{ name: 'MODE', datatype: 'BYTES', dims: [1] }],
    outputs: [{ name: 'OUT', datatype: 'BYTES', dims: [-1] }],
  },
  async initialize({ instanceName, modelName, version, parameters, config, metrics, log }) {
    calls = metrics.counter('node_model_calls', { help: 'calls of the model', labels: { model: modelName } });
    log.warn(
      `initialized ${instanceName} ${modelName}:${version} ${config.backend} ${JSON.stringify(parameters)}`,
    );
  },
  execute(requests, context) {
    return MODES[requests[0].input('MODE').strings()[0]](requests, context);
  },
  async finalize() {
    await new Promise((resolve) => setTimeout(resolve, 20));
    console.log('finalized');
  },
});
