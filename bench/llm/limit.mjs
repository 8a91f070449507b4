// The limit: libllama's own batched decoding with nothing around it, no server, no scheduler, no text. Every stream is a
// sequence; each step decodes one token of all that run, and fills up with prompts of those that begin. A process of its
// own, started by run.mjs with the point as JSON; prints the numbers as JSON.
import { createBatch, createLogitsReader, createThreadpool, openLibrary } from './libllama.mjs';
import { Recording } from './recording.mjs';
import { cellsOf, prefixOf, SCENARIOS } from './workload.mjs';

/** Cells are given in such portions; a little more than is needed costs nothing. */
const CELLS_STEP = 256;
const STEP_TOKENS = 512;
/** The weights are read into memory, not mapped from the file as by default. */
const LOAD_MODE_PLAIN = 0;

class Limit {
  #library;
  #context;
  #memory;
  #vocab;
  #vocabSize;
  #batch;
  #readLogits;
  #point;
  #recording;
  #slots;
  /** Of the shared beginning, which a sequence of its own holds. */
  #prefixLength = 0;
  #prefixSequence;

  constructor(point) {
    const library = openLibrary(point.library);
    const model = library.loadModel(point.modelFile, {
      ...library.modelDefaults(),
      n_gpu_layers: point.gpuLayers,
      ...(point.isMapped ? {} : { load_mode: LOAD_MODE_PLAIN }),
    });
    if (model === null) throw new Error(`${point.modelFile} could not be loaded`);
    this.#library = library;
    this.#point = point;
    this.#vocab = library.vocabOf(model);
    this.#vocabSize = library.vocabSize(this.#vocab);
    this.#prefixSequence = point.concurrency;
    this.#context = this.#createContext(model);
    this.#memory = library.memoryOf(this.#context);
    this.#batch = createBatch(library, { size: STEP_TOKENS, sequenceCount: point.concurrency + 1 });
    this.#readLogits = createLogitsReader(library, { context: this.#context, vocabSize: this.#vocabSize });
    this.#slots = Array.from({ length: point.concurrency }, (_, sequence) => ({
      sequence,
      request: undefined,
    }));
  }

  #createContext(model) {
    const { concurrency, scenario, isUnified, threads, samplesOnDevice } = this.#point;
    const library = this.#library;
    const perSequence = cellsOf(scenario);
    const { sharedTokens } = SCENARIOS[scenario];
    // In one cache the shared beginning lies once; with one cache per sequence everybody has a copy.
    const cells = isUnified
      ? sharedTokens + concurrency * (perSequence - sharedTokens) + CELLS_STEP
      : (concurrency + 1) * Math.ceil(perSequence / CELLS_STEP) * CELLS_STEP;
    const context = library.createContext(model, {
      ...library.contextDefaults(),
      n_ctx: Math.ceil(cells / CELLS_STEP) * CELLS_STEP,
      n_batch: STEP_TOKENS,
      n_ubatch: STEP_TOKENS,
      n_seq_max: concurrency + 1,
      n_threads: threads,
      n_threads_batch: threads,
      kv_unified: isUnified,
      no_perf: true,
    });
    if (context === null) throw new Error('the context could not be created');
    const pool = createThreadpool(library, threads);
    library.attachThreadpool(context, pool, pool);
    for (let sequence = 0; samplesOnDevice && sequence < concurrency; sequence++) {
      const chain = library.createChain({ no_perf: true });
      library.addToChain(chain, library.createGreedy());
      if (!library.setSampler(context, sequence, chain)) throw new Error('no sampling on this device');
    }
    return context;
  }

  run() {
    this.#computePrefix();
    this.#recording = new Recording({ ...this.#point, nowMs: performance.now() });
    while (!this.#recording.isOver(performance.now())) this.#step();
    return { ...this.#recording.summarize(), clientShare: 0 };
  }

  #tokenize(text) {
    const tokens = new Int32Array(Buffer.byteLength(text) + 8);
    const count = this.#library.tokenize(
      this.#vocab,
      text,
      Buffer.byteLength(text),
      tokens,
      tokens.length,
      true,
      false,
    );
    return tokens.subarray(0, count);
  }

  #computePrefix() {
    const { scenario, seed } = this.#point;
    if (SCENARIOS[scenario].sharedTokens === 0) return;
    const tokens = this.#tokenize(prefixOf({ scenario, seed }));
    for (let from = 0; from < tokens.length; from += STEP_TOKENS) {
      this.#batch.clear();
      tokens.subarray(from, from + STEP_TOKENS).forEach((token, i) => {
        this.#batch.add({ token, position: from + i, sequence: this.#prefixSequence, isOutput: false });
      });
      this.#decode();
    }
    this.#prefixLength = tokens.length;
  }

  /** schedule, decode, sample */
  #step() {
    this.#batch.clear();
    const waiting = [];
    for (const slot of this.#slots) {
      if (slot.request === undefined) this.#begin(slot);
      if (slot.fed < slot.tokens.length) waiting.push(slot);
      else slot.output = this.#add(slot, { token: slot.last, isOutput: true });
    }
    for (const slot of waiting) this.#prefill(slot);
    this.#decode();
    const rows = this.#slots.filter((slot) => slot.output !== undefined).sort((a, b) => a.output - b.output);
    const tokens = this.#sample(rows);
    const nowMs = performance.now();
    rows.forEach((slot, i) => {
      this.#accept(slot, { token: tokens[i], nowMs });
    });
  }

  #begin(slot) {
    slot.request = this.#recording.begin(slot.sequence, performance.now());
    slot.tokens = this.#tokenize(slot.request.suffix);
    slot.fed = 0;
    slot.position = this.#prefixLength;
    slot.output = undefined;
    this.#library.removeCells(this.#memory, slot.sequence, -1, -1);
    if (this.#prefixLength > 0) {
      this.#library.shareCells(this.#memory, this.#prefixSequence, slot.sequence, -1, -1);
    }
  }

  #prefill(slot) {
    while (slot.fed < slot.tokens.length && this.#batch.length < STEP_TOKENS) {
      const isOutput = slot.fed === slot.tokens.length - 1;
      const index = this.#add(slot, { token: slot.tokens[slot.fed++], isOutput });
      if (isOutput) slot.output = index;
    }
  }

  #add(slot, { token, isOutput }) {
    return this.#batch.add({ token, position: slot.position++, sequence: slot.sequence, isOutput });
  }

  #decode() {
    const code = this.#library.decode(this.#context, this.#batch.struct);
    if (code !== 0) throw new Error(`llama_decode: ${code}`);
  }

  /** Greedy, either here over the logits or on the device, which then sends one number instead of a row. */
  #sample(rows) {
    if (this.#point.samplesOnDevice) {
      return rows.map(({ output }) => this.#library.sampledToken(this.#context, output));
    }
    const logits = this.#readLogits(rows.length);
    return rows.map((_, row) => findLargest(logits, row * this.#vocabSize, this.#vocabSize));
  }

  #accept(slot, { token, nowMs }) {
    slot.last = token;
    slot.output = undefined;
    slot.request.eventsMs.push(nowMs);
    if (slot.request.eventsMs.length < slot.request.outputTokens) return;
    this.#recording.end(slot.request, { nowMs, tokenCount: slot.request.eventsMs.length });
    slot.request = undefined;
  }
}

function findLargest(values, from, length) {
  let best = from;
  let largest = values[from];
  for (let i = from + 1; i < from + length; i++) {
    if (values[i] > largest) {
      largest = values[i];
      best = i;
    }
  }
  return best - from;
}

process.stdout.write(`${JSON.stringify(new Limit(JSON.parse(process.argv[2])).run())}\n`);
// Threads of the library may still wait for work; there is nothing to save.
process.exit(0);
