// The sum of what the decoupled model `stream` sends; COUNT below zero: of the first five, and then no more.
import { defineModel, Tensor } from 'nereid/model';

export default defineModel({
  config: {
    inputs: [{ name: 'COUNT', datatype: 'INT32', dims: [1] }],
    outputs: [{ name: 'SUM', datatype: 'INT32', dims: [1] }],
  },
  async execute([request], { stream }) {
    let sum = 0;
    let seen = 0;
    for await (const response of stream('stream', { inputs: [request.input('COUNT')] })) {
      sum += response.output('INDEX').dataAs('INT32')[0];
      if (++seen === 5 && request.input('COUNT').data[0] < 0) break;
    }
    return [{ outputs: [Tensor.from('SUM', Int32Array.of(sum))] }];
  },
});
