// Counts from 0 up to COUNT, one response for each number; for ever below zero.
import { setTimeout as sleep } from 'node:timers/promises';
import { defineModel, ModelError, Tensor } from 'nereid/model';

export default defineModel({
  config: {
    inputs: [{ name: 'COUNT', datatype: 'INT32', dims: [1] }],
    outputs: [{ name: 'INDEX', datatype: 'INT32', dims: [1] }],
    decoupled: true,
  },
  execute: (requests) =>
    requests.map(async (request) => {
      const [count] = request.input('COUNT').data;
      if (count === 1000) throw new ModelError('INVALID_ARG', 'too many');
      const sender = request.sender();
      for (let i = 0; i !== count && !request.isCancelled; i++) {
        await sender.send({ outputs: [Tensor.from('INDEX', Int32Array.of(i))] });
        await sleep(10);
      }
      if (request.isCancelled) console.log(`stopped: ${sender.isCancelled} ${request.signal.aborted}`);
    }),
});
