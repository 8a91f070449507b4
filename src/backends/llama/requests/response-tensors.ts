// Builds the output tensors of a llama model's responses, by name, leaving out what the request did not ask for.

import type { ExecuteOutput } from '../../../backend/sdk.ts';
import type { OUTPUTS } from '../complete-config.ts';

export type OutputName = (typeof OUTPUTS)[number]['name'];

export class ResponseTensors {
  readonly #indexes: ReadonlyMap<string, number>;
  /** Empty: all. */
  readonly #requested: readonly number[];
  readonly #outputs: ExecuteOutput[] = [];

  constructor(indexes: ReadonlyMap<string, number>, requested: readonly number[]) {
    this.#indexes = indexes;
    this.#requested = requested;
  }

  get outputs(): readonly ExecuteOutput[] {
    return this.#outputs;
  }

  texts(name: OutputName, values: readonly string[]): this {
    const lengths = values.map((value) => Buffer.byteLength(value));
    const data = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + 4 + length, 0));
    let offset = 0;
    values.forEach((value, i) => {
      offset = data.writeUInt32LE(lengths[i]!, offset);
      offset += data.write(value, offset);
    });
    return this.#add(name, values.length, data);
  }

  uint32s(name: OutputName, values: readonly number[]): this {
    const data = Buffer.allocUnsafe(values.length * 4);
    for (let i = 0; i < values.length; i++) data.writeUInt32LE(values[i]!, i * 4);
    return this.#add(name, values.length, data);
  }

  floats(name: OutputName, values: readonly number[]): this {
    const data = Buffer.allocUnsafe(values.length * 4);
    for (let i = 0; i < values.length; i++) data.writeFloatLE(values[i]!, i * 4);
    return this.#add(name, values.length, data);
  }

  #add(name: OutputName, length: number, data: Buffer): this {
    const index = this.#indexes.get(name);
    const isWanted = index !== undefined && (this.#requested.length === 0 || this.#requested.includes(index));
    if (isWanted) this.#outputs.push({ index, shape: [length], data });
    return this;
  }
}
