// Python models made for one test, and what is asked of them. The caller's repository holds them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { type Answer, call } from './load.ts';
import type { TestRepository } from './repository.ts';
import type { RunningServer } from './server.ts';

const IO = `input [ { name: "IN" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]`;

const OPENING = `import os, sys
import numpy as np
import triton_python_backend_utils as pb_utils

def answers(requests, text):
    data = np.array([text.encode()], dtype=np.object_)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]) for _ in requests]

def asked(requests):
    return pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()[0].decode()

`;

/** One text in, one text out. `source` may use answers(requests, text), asked(requests), os, sys, np and pb_utils. */
export function addPythonModel(
  repository: TestRepository,
  options: {
    readonly name: string;
    /** Undefined: the model is of a Python-based backend and has no file. */
    readonly source?: string;
    readonly backend?: string;
    readonly config?: string;
    readonly requirements?: string;
  },
): void {
  const { name, backend = 'python', config = '', source, requirements } = options;
  mkdirSync(repository.at(name, '1'), { recursive: true });
  writeFileSync(repository.at(name, 'config.pbtxt'), `backend: "${backend}"\n${IO}\n${config}\n`);
  if (source !== undefined) writeFileSync(repository.at(name, '1', 'model.py'), `${OPENING}${source}`);
  if (requirements !== undefined) writeFileSync(repository.at(name, '1', 'requirements.txt'), requirements);
}

/** A model.py for a backend directory. */
export function pythonSource(source: string): string {
  return `${OPENING}${source}`;
}

export function textBody(text: string): string {
  return JSON.stringify({ inputs: [{ name: 'IN', datatype: 'BYTES', shape: [1], data: [text] }] });
}

export function ask(server: RunningServer, model: string, text: string): Promise<Answer> {
  return call(server, { path: `/v2/models/${model}/infer`, body: textBody(text) });
}

/** The text of a good answer; throws with the error of another. */
export async function askText(server: RunningServer, model: string, text = ''): Promise<string> {
  const answer = await ask(server, model, text);
  if (answer.status !== 200) throw new Error(`${model} answered ${answer.status}: ${answer.text}`);
  const { outputs } = JSON.parse(answer.text) as { outputs: { data: string[] }[] };
  return outputs[0]!.data[0]!;
}

export async function askError(server: RunningServer, model: string, text: string): Promise<string> {
  const answer = await ask(server, model, text);
  if (answer.status === 200) throw new Error(`${model} answered ${answer.text}`);
  return (JSON.parse(answer.text) as { error: string }).error;
}

export async function load(server: RunningServer, model: string): Promise<void> {
  const { status, text } = await call(server, { path: `/v2/repository/models/${model}/load`, body: '' });
  if (status !== 200) throw new Error(text);
}

/** The text of a load that fails. */
export async function loadError(server: RunningServer, model: string): Promise<string> {
  const { status, text } = await call(server, { path: `/v2/repository/models/${model}/load`, body: '' });
  if (status === 200) throw new Error(`${model} was loaded`);
  return (JSON.parse(text) as { error: string }).error;
}
