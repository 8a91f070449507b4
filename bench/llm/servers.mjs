// The two servers of the LLM bench: Nereid with a model directory, and llama.cpp's llama-server. Called by run.mjs.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BenchServer, startNereid } from '../servers.mjs';
import { cellsOf, SCENARIOS } from './workload.mjs';

export const MODEL_NAME = 'bench-llm';
const CELLS_STEP = 256;
/** What a model gets that names no number of cells. */
const CELLS_DEFAULT = 32_768;

export function startNereidWith({ modelFile, library, options, workFolder }) {
  const repository = join(workFolder, 'repository');
  const folder = join(repository, MODEL_NAME);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, '1'), { recursive: true });
  symlinkSync(modelFile, join(folder, '1', 'model.gguf'));
  writeFileSync(join(folder, 'config.pbtxt'), renderConfig(options));
  return startNereid({
    repository,
    logFolder: workFolder,
    flags: [`--backend-config=llama,library-path=${library.folder}`],
  });
}

/** Its defaults, but for what all systems are given. */
function renderConfig({ threads, gpuLayers, points }) {
  const cells = Math.max(...points.map(needOf));
  const parameters = {
    threads,
    threads_batch: threads,
    gpu_layers: gpuLayers,
    ...(cells > CELLS_DEFAULT ? { kv_cells: Math.ceil(cells / CELLS_STEP) * CELLS_STEP } : {}),
  };
  return [
    `name: "${MODEL_NAME}"`,
    'backend: "llama"',
    ...Object.entries(parameters).map(
      ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`,
    ),
    '',
  ].join('\n');
}

function needOf({ scenario, concurrency }) {
  const { sharedTokens } = SCENARIOS[scenario];
  return sharedTokens + concurrency * (cellsOf(scenario) - sharedTokens);
}

export function hasLlamaServer(library) {
  return existsSync(join(library.folder, 'llama-server'));
}

/** As many slots as streams, which serves it best; a slot keeps its prompt, so that every slot has the prefix for itself. */
export function startLlamaServer({ system, modelFile, library, options, point, workFolder }) {
  const { threads, gpuLayers } = options;
  const cells = point.concurrency * Math.ceil(cellsOf(point.scenario) / CELLS_STEP) * CELLS_STEP;
  const args = [
    ...['--model', modelFile, '--alias', MODEL_NAME],
    ...['--ctx-size', String(cells), '--parallel', String(point.concurrency)],
    ...['--threads', String(threads), '--threads-batch', String(threads)],
    ...['--gpu-layers', String(gpuLayers), '--fit', 'off'],
    // Prompts are not kept outside the cache: with prompts that never come again this costs copies for nothing.
    ...['--cache-ram', '0', '--no-ui', '--no-slots', '--log-disable'],
    system === 'llama-server-split' ? '--no-kv-unified' : '--kv-unified',
    ...(system === 'llama-server-device' ? ['--backend-sampling'] : []),
  ];
  return BenchServer.start({
    name: system,
    file: join(library.folder, 'llama-server'),
    args,
    env: {},
    logFolder: workFolder,
    listenersOf: ({ port }) => ['--host', '127.0.0.1', '--port', String(port)],
    readyPath: '/health',
  });
}
