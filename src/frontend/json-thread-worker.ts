// The thread behind json-thread.ts: imports the module that a task names, runs the task, sends the result back.

import { parentPort } from 'node:worker_threads';
import { StatusError } from '../domain/status.ts';
import {
  ownedBuffers,
  type TaskModule,
  type TaskOutcome,
  type ThreadResult,
  type ThreadTask,
} from './json-thread.ts';

const modules = new Map<string, Promise<TaskModule>>();

parentPort?.on('message', async (task: ThreadTask) => {
  const { result, made } = await resultOf(task);
  parentPort?.postMessage(result, ownedBuffers(made));
});

async function resultOf(task: ThreadTask): Promise<{ result: ThreadResult; made: readonly Uint8Array[] }> {
  try {
    const { value, made } = await run(task);
    return { result: { id: task.id, isOk: true, value }, made };
  } catch (thrown) {
    const error = StatusError.from(thrown);
    return { result: { id: task.id, isOk: false, code: error.code, message: error.message }, made: [] };
  }
}

async function run({ module, options }: ThreadTask): Promise<TaskOutcome> {
  let imported = modules.get(module);
  if (imported === undefined) {
    imported = import(module) as Promise<TaskModule>;
    modules.set(module, imported);
  }
  return (await imported).runTask(options);
}
