// An Instance with the identity backend that remembers what it was told, for the host cases.
import assert from 'node:assert/strict';
import type { StatusError } from '../../src/domain/status.ts';
import type { HostCommand } from '../../src/instance/host-process.ts';
import { Instance, type InstanceState } from '../../src/instance/instance.ts';
import type { ReceivedPart } from '../../src/instance/part-frame.ts';
import type { LoadMessage } from '../../src/instance/protocol.ts';
import type { ReceivedReply } from '../../src/instance/response-frame.ts';
import { parseModelConfig } from '../../src/wire/pbtxt/parse-model-config.ts';

function makeLoad(extra = '', options: { hasOutputs: boolean } = { hasOutputs: true }): LoadMessage {
  const tensors = (names: string[]) =>
    names.map((name) => `{ name: "${name}" data_type: TYPE_FP32 dims: [ -1 ] }`).join(', ');
  const config = parseModelConfig(`name: "m" backend: "identity" max_batch_size: 8
    input [ ${tensors(['A', 'B'])} ] output [ ${options.hasOutputs ? tensors(['Y', 'Z']) : ''} ] ${extra}`);
  return {
    backend: 'identity',
    modelName: 'm',
    version: 1,
    modelDirectory: '',
    versionDirectory: '',
    config,
    isAutoComplete: true,
    backendConfig: {},
    placement: { name: 'm_0', kind: 'KIND_CPU', deviceId: 0, threadCount: 1 },
  };
}

/** The identity backend asks nothing of the server. */
export const NO_CALLS = {
  onCall: () => assert.fail('a call'),
  onCallCancel: () => assert.fail('a cancelled call'),
  onCallFlow: () => assert.fail('a paused call'),
};

export class WatchedInstance {
  readonly instance: Instance;
  readonly states: InstanceState[] = [];
  readonly lost: { error: StatusError }[] = [];
  readonly parts: ReceivedPart[] = [];
  readonly #load: LoadMessage;
  readonly #replies = new Map<number, ReceivedReply>();
  readonly #wanted = new Map<number, (reply: ReceivedReply) => void>();

  constructor(command: HostCommand, extra = '', options?: { hasOutputs: boolean }) {
    this.#load = makeLoad(extra, options);
    this.instance = new Instance({
      command,
      load: this.#load,
      events: {
        ...NO_CALLS,
        onRequestCancelled: () => {},
        onReply: (_, reply) => {
          this.#replies.set(reply.batchId, reply);
          this.#wanted.get(reply.batchId)?.(reply);
        },
        onPart: (_, part) => this.parts.push(part),
        onLost: (_, error) => this.lost.push({ error }),
        onStateChange: (instance) => this.states.push(instance.state),
        onLog: () => {},
      },
    });
  }

  async start(): Promise<void> {
    await this.instance.start(await this.instance.load(), []);
  }

  reply(batchId: number): Promise<ReceivedReply> {
    const reply = this.#replies.get(batchId);
    if (reply !== undefined) return Promise.resolve(reply);
    return new Promise((resolve) => this.#wanted.set(batchId, resolve));
  }
}
