// Where log lines go: the two console streams or one file opened for append. Writing never blocks the event
// loop and never throws: when the reader of a pipe is gone or a disk is full, lines are dropped, the server
// goes on. What is waiting is bounded; past the bound lines are dropped and counted.

import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';

export interface LogSink {
  write(line: string, isError: boolean): void;
  /** Resolves when everything written before has been handed to the system, or has failed. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Characters waiting in one stream before lines are dropped: a stalled reader must not take the memory. */
const PENDING_BYTES_MAX = 16 * 1024 * 1024;

/** INFO → stdout, WARNING and ERROR → stderr, as Triton does. */
export function consoleSink(streams: { stdout: Writable; stderr: Writable } = process): LogSink {
  const stdout = guarded(streams.stdout);
  const stderr = guarded(streams.stderr);
  const flush = async (): Promise<void> => {
    await Promise.all([stdout.flush(), stderr.flush()]);
  };
  return {
    write: (line, isError) => (isError ? stderr : stdout).write(line),
    flush,
    // the console belongs to the process and stays open
    close: flush,
  };
}

/** Every level into one file, appended. */
export function fileSink(path: string): LogSink {
  const stream = createWriteStream(path, { flags: 'a' });
  const file = guarded(stream, (error) => {
    process.stderr.write(`failed to write log file '${path}': ${error.message}\n`);
  });
  return {
    write: (line) => file.write(line),
    flush: file.flush,
    async close() {
      await file.flush();
      if (!stream.destroyed) await new Promise<void>((resolve) => stream.end(() => resolve()));
    },
  };
}

interface GuardedStream {
  write(line: string): void;
  flush(): Promise<void>;
}

function guarded(stream: Writable, onFirstError?: (error: Error) => void): GuardedStream {
  let isBroken = false;
  let droppedCount = 0;
  // EPIPE and its like arrive as events; without a listener they would end the process
  stream.on('error', (error: Error) => {
    if (isBroken) return;
    isBroken = true;
    onFirstError?.(error);
  });
  const isWritable = (): boolean => !isBroken && !stream.destroyed && !stream.writableEnded;
  return {
    write(line) {
      if (!isWritable()) return;
      if (stream.writableLength > PENDING_BYTES_MAX) {
        droppedCount++;
        return;
      }
      if (droppedCount > 0) {
        stream.write(`... ${droppedCount} log lines were dropped because their reader was too slow\n`);
        droppedCount = 0;
      }
      stream.write(line);
    },
    flush() {
      if (!isWritable() || stream.writableLength === 0) return Promise.resolve();
      return new Promise((resolve) => {
        stream.once('close', resolve);
        stream.write('', () => {
          stream.off('close', resolve);
          resolve();
        });
      });
    },
  };
}
