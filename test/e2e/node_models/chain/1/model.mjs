// Y = 10 X: asks version 2 of the ONNX model `scaler`, and then the node model `echo`.
import { defineModel } from 'nereid/model';

export default defineModel({
  config: {
    maxBatchSize: 8,
    inputs: [{ name: 'X', datatype: 'FP32', dims: [-1] }],
    outputs: [{ name: 'Y', datatype: 'FP32', dims: [-1] }],
    dynamicBatching: { maxQueueDelayUs: 1000 },
  },
  execute: (requests, { infer }) =>
    requests.map(async (request) => {
      const inputs = [request.input('X')];
      const scaled = await infer('scaler', { inputs, version: 2, outputs: ['Y'], request });
      const { id, output } = await infer('echo', {
        inputs: [scaled.output('Y').rename('X')],
        id: 'c',
        request,
      });
      return { outputs: [output('Y')], parameters: { id, version: scaled.version } };
    }),
});
