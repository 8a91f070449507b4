import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createMessage } from '../domain/message-value.ts';
import type { ModelConfig } from '../domain/model-config.ts';
import { internal, StatusError } from '../domain/status.ts';
import { createPythonCommand, type PythonFiles } from './python-command.ts';

describe('the command of a Python host', () => {
  const folder = mkdtempSync(join(tmpdir(), 'nereid-command-'));
  const given = process.env.NEREID_PYTHON;
  const logged: string[] = [];
  before(() => {
    process.env.NEREID_PYTHON = '';
    mkdirSync(join(folder, '1'));
    for (const name of ['own', 'python']) {
      mkdirSync(join(folder, name, 'bin'), { recursive: true });
      writeFileSync(join(folder, name, 'bin', 'python'), '');
    }
  });
  after(() => {
    if (given === undefined) delete process.env.NEREID_PYTHON;
    else process.env.NEREID_PYTHON = given;
    rmSync(folder, { recursive: true, force: true });
  });

  const OWN_FILE: PythonFiles = { host: '/host.py', backend: undefined };

  function commandWith(
    options: { settings?: Record<string, string>; environment?: string },
    files: PythonFiles = OWN_FILE,
  ) {
    const config = createMessage('ModelConfig') as unknown as ModelConfig;
    config.name = 'm';
    if (options.environment !== undefined)
      config.parameters.EXECUTION_ENV_PATH = { string_value: options.environment };
    const pythonSettings = options.settings ?? {};
    return createPythonCommand(
      { config, version: 1, modelDirectory: folder, pythonSettings, log: (line) => logged.push(line) },
      files,
    );
  }

  test('has the interpreter of EXECUTION_ENV_PATH, activated', async () => {
    const { file, args, env, executeMsMax } = await commandWith({
      environment: '$$TRITON_MODEL_DIRECTORY/own',
    });
    assert.equal(file, join(folder, 'own', 'bin', 'python'));
    assert.deepEqual(args, ['/host.py']);
    assert.equal(env?.VIRTUAL_ENV, join(folder, 'own'));
    assert.equal(env?.PATH?.split(':')[0], join(folder, 'own', 'bin'));
    assert.equal(env?.PYTHONDONTWRITEBYTECODE, '1');
    assert.equal(executeMsMax, undefined);
  });

  test('has that of NEREID_PYTHON all the same, and says so', async () => {
    process.env.NEREID_PYTHON = join(folder, 'python', 'bin', 'python');
    try {
      const { file } = await commandWith({ environment: '/nowhere' });
      assert.equal(file, process.env.NEREID_PYTHON);
      assert.deepEqual(logged, ['NEREID_PYTHON is set, EXECUTION_ENV_PATH /nowhere is not used']);
    } finally {
      process.env.NEREID_PYTHON = '';
    }
  });

  test('names the file of a Python-based backend', async () => {
    const files = { host: '/host.py', backend: '/backends/b/model.py' };
    const { args } = await commandWith({ environment: join(folder, 'own') }, files);
    assert.deepEqual(args, ['/host.py', '/backends/b/model.py']);
  });

  test('has the time limit of an execution', async () => {
    const environment = join(folder, 'own');
    const limitOf = async (secs: string) =>
      (await commandWith({ environment, settings: { 'execute-timeout-secs': secs } })).executeMsMax;
    assert.equal(await limitOf('2.5'), 2500);
    assert.equal(await limitOf('0'), undefined);
    await assert.rejects(limitOf('soon'), /'execute-timeout-secs' must be a number of seconds.*got 'soon'/);
    await assert.rejects(limitOf('-1'), /got '-1'/);
    await assert.rejects(commandWith({ settings: { 'auto-install': 'maybe' } }), /must be true or false/);
  });

  test('explains a missing module and leaves other errors alone', async () => {
    const { explain } = await commandWith({ environment: join(folder, 'own') });
    const python = join(folder, 'own', 'bin', 'python');
    const explained = explain!(internal("ModuleNotFoundError: No module named 'a.b'"));
    assert.equal(
      explained.message,
      "ModuleNotFoundError: No module named 'a.b'; " +
        `Install what the model needs with: ${python} -m pip install a ` +
        `(or let the server do it: --backend-config=python,auto-install=true and a ${join(folder, '1', 'requirements.txt')})`,
    );
    const other = new StatusError('INTERNAL', 'ValueError: no');
    assert.equal(explain!(other), other);
  });
});
