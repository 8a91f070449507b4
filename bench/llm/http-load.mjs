// One point over HTTP: streams of /v1/completions on raw sockets, each asking again when its answer has ended. A process of
// its own, started by run.mjs with the point as JSON; prints the numbers as JSON. It shares the cores with the server, so
// it reads the events as bytes and parses one of them per answer.
import { connect } from 'node:net';
import { Recording } from './recording.mjs';

const DATA = Buffer.from('data: ');
const TEXT = Buffer.from('"text":"');
const USAGE = Buffer.from('"usage":{');
const CHOICES = Buffer.from('"choices"');
const END_OF_EVENT = Buffer.from('\n\n');
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const END_OF_BODY = Buffer.from('\r\n0\r\n\r\n');
const QUOTE = 0x22;

/** llama-server closes the connection after every streamed answer; once seen, each question gets a fresh one. */
let closesAfterAnswer = false;

class Stream {
  #socket;
  #rest = Buffer.alloc(0);
  #recording;
  #request;
  #bytesToSend;
  #point;
  #number;
  #onError;
  #hasBytes = false;
  #hasHead = false;
  #isDone = false;
  #tokenCount;

  constructor({ point, number, recording, onError }) {
    this.#point = point;
    this.#number = number;
    this.#recording = recording;
    this.#onError = onError;
    this.#ask();
  }

  close() {
    this.#socket?.removeAllListeners();
    // What arrives late is of no interest.
    this.#socket?.on('error', () => {});
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #open() {
    this.close();
    const socket = connect({ port: this.#point.port, host: '127.0.0.1', noDelay: true });
    socket.on('data', (bytes) => this.#guard(() => this.#take(bytes)));
    socket.on('error', (error) => this.#lose(error));
    socket.on('close', () => this.#lose(new Error('the server closed a stream')));
    this.#socket = socket;
  }

  /** A question that met a closing connection is asked again; an answer that breaks off is an error. */
  #lose(error) {
    if (this.#hasBytes || closesAfterAnswer) {
      this.#onError(error);
      return;
    }
    closesAfterAnswer = true;
    this.#send();
  }

  #guard(act) {
    try {
      act();
    } catch (thrown) {
      this.#onError(thrown);
    }
  }

  #ask() {
    const { model, port } = this.#point;
    const request = this.#recording.begin(this.#number, performance.now());
    const body = Buffer.from(
      JSON.stringify({
        model,
        prompt: request.prompt,
        max_tokens: request.outputTokens,
        temperature: 0,
        ignore_eos: true,
        stream: true,
        stream_options: { include_usage: true },
      }),
    );
    const head =
      `POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n`;
    this.#bytesToSend = Buffer.concat([Buffer.from(head), body]);
    this.#hasBytes = false;
    this.#hasHead = false;
    this.#isDone = false;
    this.#tokenCount = undefined;
    this.#request = request;
    // Making the prompt is not the server's time.
    request.startedMs = performance.now();
    this.#send();
  }

  #send() {
    if (closesAfterAnswer || this.#socket === undefined) this.#open();
    this.#socket.write(this.#bytesToSend);
  }

  #take(bytes) {
    const nowMs = performance.now();
    this.#hasBytes = true;
    let text = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    if (!this.#hasHead) {
      const end = text.indexOf(END_OF_HEAD);
      if (end === -1) {
        this.#rest = text;
        return;
      }
      const head = text.toString('latin1', 0, end);
      if (!head.startsWith('HTTP/1.1 200'))
        throw new Error(`the server said: ${text.toString('utf8').slice(0, 1000)}`);
      // The line end before the first chunk stays: END_OF_BODY begins with one.
      text = text.subarray(end + 2);
      this.#hasHead = true;
    }
    for (let end = text.indexOf(END_OF_EVENT); end !== -1; end = text.indexOf(END_OF_EVENT)) {
      this.#takeEvent(text.subarray(0, end), nowMs);
      text = text.subarray(end + END_OF_EVENT.length);
    }
    this.#rest = text;
    if (this.#isDone && text.includes(END_OF_BODY)) this.#finish(nowMs);
  }

  /** Sizes of HTTP chunks stand between the events; "data: " marks where one begins. */
  #takeEvent(bytes, nowMs) {
    const start = bytes.lastIndexOf(DATA);
    if (start === -1) return;
    const event = bytes.subarray(start + DATA.length);
    if (event[0] === 0x5b) {
      this.#isDone = true;
      return;
    }
    if (!event.includes(CHOICES))
      throw new Error(`the server sent: ${event.toString('utf8').slice(0, 1000)}`);
    const text = event.indexOf(TEXT);
    if (text !== -1 && event[text + TEXT.length] !== QUOTE) this.#request.eventsMs.push(nowMs);
    if (event.includes(USAGE)) this.#tokenCount = JSON.parse(event.toString('utf8')).usage.completion_tokens;
  }

  #finish(nowMs) {
    this.#rest = Buffer.alloc(0);
    this.#recording.end(this.#request, { nowMs, tokenCount: this.#tokenCount });
    this.#ask();
  }
}

const POLL_MS = 20;

function main(point) {
  const recording = new Recording({ ...point, nowMs: performance.now() });
  const fail = (error) => {
    process.stderr.write(`${error.stack ?? error}\n`);
    process.exit(1);
  };
  const streams = Array.from(
    { length: point.concurrency },
    (_, number) => new Stream({ point, number, recording, onError: fail }),
  );
  let cpu;
  let cpuBeganMs;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (recording.isInWindow && cpu === undefined) {
      cpu = process.cpuUsage();
      cpuBeganMs = nowMs;
    }
    try {
      if (!recording.isOver(nowMs)) return;
    } catch (thrown) {
      fail(thrown);
    }
    clearInterval(timer);
    for (const stream of streams) stream.close();
    const used = process.cpuUsage(cpu);
    const clientShare = (used.user + used.system) / 1000 / (nowMs - cpuBeganMs);
    process.stdout.write(`${JSON.stringify({ ...recording.summarize(), clientShare })}\n`);
  }, POLL_MS);
}

main(JSON.parse(process.argv[2]));
