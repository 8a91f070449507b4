// Y = X, and what the request says of itself as parameters of the response.
import { defineModel } from 'nereid/model';

export default defineModel({
  config: {
    maxBatchSize: 8,
    inputs: [{ name: 'X', datatype: 'FP32', dims: [-1] }],
    outputs: [{ name: 'Y', datatype: 'FP32', dims: [-1] }],
    dynamicBatching: true,
  },
  execute(requests) {
    return requests.map(({ inputs, id, correlationId, flags, parameters }) => ({
      outputs: [inputs[0].rename('Y')],
      parameters: id === '' ? {} : { ...parameters, id, correlationId, flags },
    }));
  },
});
