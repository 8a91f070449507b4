// One point of node-llama-cpp, in its own process without a server around it: a sequence per stream, batched by the package
// itself, with the prebuilt library that comes with it. Started by run.mjs with the point as JSON; prints the numbers as JSON.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Recording } from './recording.mjs';
import { cellsOf } from './workload.mjs';

const STEP_TOKENS = 512;

async function main(point) {
  const { getLlama } = await import(pathToFileURL(join(point.packageFolder, 'dist', 'index.js')).href);
  const llama = await getLlama({
    gpu: point.gpuLayers > 0 ? 'auto' : false,
    build: 'never',
    logLevel: 'error',
    maxThreads: point.threads,
  });
  const model = await llama.loadModel({ modelPath: point.modelFile, gpuLayers: point.gpuLayers });
  const context = await model.createContext({
    sequences: point.concurrency,
    contextSize: cellsOf(point.scenario),
    batchSize: STEP_TOKENS,
    threads: point.threads,
  });
  const recording = new Recording({ ...point, nowMs: performance.now() });
  const sequences = Array.from({ length: point.concurrency }, () => context.getSequence());
  await Promise.all(sequences.map((sequence, stream) => runStream({ model, sequence, stream, recording })));
  process.stdout.write(`${JSON.stringify({ ...recording.summarize(), clientShare: 0 })}\n`);
  process.exit(0);
}

async function runStream({ model, sequence, stream, recording }) {
  while (!recording.isOver(performance.now())) {
    const request = recording.begin(stream, performance.now());
    const tokens = model.tokenize(request.prompt);
    // What the sequence holds already and the new prompt begins with is kept; the last token is always computed.
    await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
    const answer = sequence.evaluate(tokens.slice(sequence.nextTokenIndex), {
      temperature: 0,
      yieldEogToken: true,
    });
    for await (const _ of answer) {
      request.eventsMs.push(performance.now());
      if (request.eventsMs.length === request.outputTokens) break;
      if (recording.isOver(performance.now())) return;
    }
    recording.end(request, { nowMs: performance.now(), tokenCount: request.eventsMs.length });
  }
}

main(JSON.parse(process.argv[2])).catch((error) => {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exit(1);
});
