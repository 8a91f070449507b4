// Where the interpreter and the packages of a Python model come from: EXECUTION_ENV_PATH as a directory and as an
// archive, requirements.txt with auto-install, Python-based backends in --backend-directory, and NEREID_PYTHON above all.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { call } from '../support/load.ts';
import { pythonSkip } from '../support/python.ts';
import { addPythonModel, askText, load, loadError, pythonSource } from '../support/python-model.ts';
import { createRepository, type TestRepository } from '../support/repository.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const PYTHON = process.env.NEREID_TEST_PYTHON ?? 'python3';
const TELL_PREFIX = `class TritonPythonModel:
    def execute(self, requests):
        return answers(requests, sys.prefix)
`;
const USE_TINY = `import tiny_package.inside

class TritonPythonModel:
    def execute(self, requests):
        return answers(requests, tiny_package.GREETING)
`;
/** A wheel is an archive with three text files about itself. */
const MAKE_WHEEL = `import os, sys, zipfile
info = "tiny_package-1.0.dist-info/"
with zipfile.ZipFile(os.path.join(sys.argv[1], "tiny_package-1.0-py3-none-any.whl"), "w") as wheel:
    wheel.writestr("tiny_package/__init__.py", "GREETING = 'hello from a wheel'\\n")
    wheel.writestr("tiny_package/inside.py", "")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: tiny-package\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "")
`;

function environmentConfig(path: string): string {
  return `parameters { key: "EXECUTION_ENV_PATH" value { string_value: "${path}" } }`;
}

/** A venv without pip that sees the packages of the tests' interpreter. */
function makeEnvironment(folder: string): void {
  execFileSync(PYTHON, ['-m', 'venv', '--without-pip', folder]);
  const places = (python: string) =>
    execFileSync(python, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'], {
      encoding: 'utf8',
    }).trim();
  writeFileSync(join(places(join(folder, 'bin', 'python')), 'tests.pth'), `${places(PYTHON)}\n`);
}

describe('environments of Python models', { skip: pythonSkip }, () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'nereid-environments-')));
  let repository: TestRepository;
  let server: RunningServer;

  function start(options: { python: string; args?: readonly string[] }): Promise<RunningServer> {
    return startServer({
      repository: repository.path,
      args: ['--model-control-mode=explicit', ...(options.args ?? [])],
      env: {
        NEREID_PYTHON: options.python,
        XDG_CACHE_HOME: join(folder, 'cache'),
        // `python3` is then the interpreter of the tests.
        PATH: `${join(PYTHON, '..')}:${process.env.PATH}`,
      },
    });
  }

  before(async () => {
    repository = createRepository();
    addPythonModel(repository, {
      name: 'own',
      source: TELL_PREFIX,
      config: environmentConfig('$$TRITON_MODEL_DIRECTORY/environment'),
    });
    makeEnvironment(repository.at('own', 'environment'));
    makeEnvironment(join(folder, 'packed'));
    execFileSync('tar', ['-czf', join(folder, 'packed.tar.gz'), '-C', join(folder, 'packed'), '.']);
    for (const name of ['archive', 'archive_too'])
      addPythonModel(repository, {
        name,
        source: TELL_PREFIX,
        config: environmentConfig(join(folder, 'packed.tar.gz')),
      });
    addPythonModel(repository, {
      name: 'absent',
      source: TELL_PREFIX,
      config: environmentConfig('$$TRITON_MODEL_DIRECTORY/nothing'),
    });
    addPythonModel(repository, { name: 'plain', source: TELL_PREFIX });
    mkdirSync(join(folder, 'backends', 'echoing'), { recursive: true });
    writeFileSync(
      join(folder, 'backends', 'echoing', 'model.py'),
      pythonSource(`import beside

class TritonPythonModel:
    def initialize(self, args):
        self.text = "%s %s %s" % (beside.WORD, args["model_name"], args["model_repository"])

    def execute(self, requests):
        return answers(requests, self.text)
`),
    );
    writeFileSync(join(folder, 'backends', 'echoing', 'beside.py'), 'WORD = "served"\n');
    for (const name of ['first', 'second']) addPythonModel(repository, { name, backend: 'echoing' });
    addPythonModel(repository, { name: 'stranger', backend: 'nowhere' });
    addPythonModel(repository, { name: 'outside', backend: '../backends/echoing' });
    server = await start({ python: '', args: [`--backend-directory=${join(folder, 'backends')}`] });
  });
  after(async () => {
    await server?.stop();
    repository?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('EXECUTION_ENV_PATH may be a directory, also inside the model', async () => {
    await load(server, 'own');
    assert.equal(
      realpathSync(await askText(server, 'own')),
      realpathSync(repository.at('own', 'environment')),
    );
  });

  test('an archive is unpacked once per path and time of change', async () => {
    await Promise.all([load(server, 'archive'), load(server, 'archive_too')]);
    const unpacked = await askText(server, 'archive');
    assert.ok(unpacked.startsWith(join(folder, 'cache', 'nereid', 'python')), unpacked);
    assert.equal(await askText(server, 'archive_too'), unpacked);
    const unpackings = () => server.logs().split(/: unpacking .*packed\.tar\.gz/).length - 1;
    assert.equal(unpackings(), 1);
    await call(server, { path: '/v2/repository/models/archive/unload', body: '' });
    utimesSync(join(folder, 'packed.tar.gz'), new Date(), new Date(Date.now() + 5000));
    await load(server, 'archive');
    assert.notEqual(await askText(server, 'archive'), unpacked);
    assert.equal(unpackings(), 2);
  });

  test('an environment that is not there fails the load in the words of Triton', async () => {
    assert.equal(
      await loadError(server, 'absent'),
      "load failed for model 'absent': version 1 is at UNAVAILABLE state: Internal: " +
        `Path ${repository.at('absent')}/nothing/bin/activate does not exist. ` +
        "The Python environment should contain an 'activate' script.;\n",
    );
  });

  test('without one it is python3', async () => {
    await load(server, 'plain');
    assert.equal(realpathSync(await askText(server, 'plain')), realpathSync(join(PYTHON, '..', '..')));
  });

  test('a Python-based backend serves every model that names it', async () => {
    for (const name of ['first', 'second']) {
      await load(server, name);
      assert.equal(await askText(server, name), `served ${name} ${repository.at(name)}`);
    }
    for (const [model, backend] of [
      ['stranger', 'nowhere'],
      ['outside', '../backends/echoing'],
    ] as const) {
      assert.equal(
        await loadError(server, model),
        `load failed for model '${model}': version 1 is at UNAVAILABLE state: Invalid argument: ` +
          `unable to find backend library for backend '${backend}', ` +
          'try specifying runtime on the model configuration.;\n',
      );
    }
  });

  test('NEREID_PYTHON comes before the environment of a model, and the log says so', async () => {
    const named = await start({ python: PYTHON });
    try {
      await load(named, 'own');
      assert.equal(realpathSync(await askText(named, 'own')), realpathSync(join(PYTHON, '..', '..')));
      assert.ok(await named.waitForLog(/own: NEREID_PYTHON is set, EXECUTION_ENV_PATH .* is not used/));
    } finally {
      await named.stop();
    }
  });

  describe('requirements.txt', () => {
    const FLAG = '--backend-config=python,auto-install=true';

    before(() => {
      execFileSync(PYTHON, ['-c', MAKE_WHEEL, folder]);
      const requirements = `--no-index\n--find-links ${folder}\ntiny-package==1.0\n`;
      addPythonModel(repository, { name: 'needs', source: USE_TINY, requirements });
      addPythonModel(repository, { name: 'needs_too', source: USE_TINY, requirements });
      addPythonModel(repository, { name: 'unlisted', source: USE_TINY });
      addPythonModel(repository, {
        name: 'wants_too_much',
        source: USE_TINY,
        requirements: '--no-index\nno-such-package-anywhere\n',
      });
    });

    test('without the flag a missing module says the command and the flag', async () => {
      const named = await start({ python: PYTHON });
      try {
        const file = (model: string) => repository.at(model, '1', 'requirements.txt');
        const places = (model: string) =>
          `\n\nAt:\n  ${repository.at(model, '1', 'model.py')}(12): <module>\n\n`;
        const begin = (model: string) =>
          `load failed for model '${model}': version 1 is at UNAVAILABLE state: Internal: ` +
          `ModuleNotFoundError: No module named 'tiny_package'${places(model)}`;
        assert.equal(
          await loadError(named, 'needs'),
          `${begin('needs')}Install what the model needs with: ${PYTHON} -m pip install -r ${file('needs')} ` +
            `(or let the server do it: ${FLAG});\n`,
        );
        assert.equal(
          await loadError(named, 'unlisted'),
          `${begin('unlisted')}Install what the model needs with: ${PYTHON} -m pip install tiny_package ` +
            `(or let the server do it: ${FLAG} and a ${file('unlisted')});\n`,
        );
      } finally {
        await named.stop();
      }
    });

    test('with it they are installed once, beside the packages of the interpreter', async () => {
      const named = await start({ python: PYTHON, args: [FLAG] });
      try {
        await Promise.all([load(named, 'needs'), load(named, 'needs_too')]);
        assert.equal(await askText(named, 'needs'), 'hello from a wheel');
        assert.equal(await askText(named, 'needs_too'), 'hello from a wheel');
        assert.equal(named.logs().split(/: installing .*requirements\.txt into /).length - 1, 1);
        assert.match(named.logs(), /: pip: .*Installing collected packages: tiny-package/);
        assert.match(named.logs(), /: installed .*requirements\.txt in [0-9.]+ s/);
        assert.match(
          await loadError(named, 'wants_too_much'),
          /the requirements of model 'wants_too_much' in .*requirements\.txt could not be installed: pip exited with code 1: [\s\S]*No matching distribution found for no-such-package-anywhere/,
        );
        assert.match(
          await loadError(named, 'unlisted'),
          /\nList the package that holds it in .*requirements\.txt;\n$/,
        );
      } finally {
        await named.stop();
      }
    });
  });
});
