// Which version answers, and whether it does, as the files beside it say.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineModel, Tensor } from 'nereid/model';

export default defineModel({
  async execute(requests, context) {
    const has = (name) => existsSync(join(context.versionDirectory, name));
    if (has('fail')) throw new Error(`version ${context.version} is broken`);
    if (has('slow')) await sleep(2_000);
    return requests.map((request) => {
      const { shape } = request.input('X');
      return { outputs: [Tensor.from('VERSION', new Int32Array(shape[0]).fill(context.version), shape)] };
    });
  },
});
