// `nereid pull`: fetches a model from a Hugging Face hub or a URL into a model repository, and says what it does.
// Puts the rooms together as server.ts does; only main.ts calls it. The substance is pull/pull.ts.

import type { PullOptions } from './cli/parse-pull.ts';
import { systemClock } from './lib/clock.ts';
import { Progress } from './pull/progress.ts';
import { pullModel } from './pull/pull.ts';
import { PullError } from './pull/pull-error.ts';
import { PUBLIC_HUB } from './pull/source.ts';

/** Tries without a single new byte; the waits between them are 1, 2, 4 and 8 s. */
const TRIES_MAX = 5;
const RETRY_MS = 1_000;
/** What a shell expects of a program that Ctrl-C ended, or SIGTERM. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** The exit code: 0 when the model is there. */
export async function pull(options: PullOptions): Promise<number> {
  const progress = new Progress(process.stdout, () => systemClock.nowMs());
  // A reader such as head may leave early; the exit code still tells the result.
  process.stdout.on('error', () => {});
  const stopping = new AbortController();
  let code = 0;
  for (const [signal, exitCode] of Object.entries(EXIT_CODES)) {
    process.once(signal, () => {
      code = exitCode;
      stopping.abort();
    });
  }
  const { repository, source } = options;
  try {
    const endpoint = (process.env.HF_ENDPOINT || PUBLIC_HUB).replace(/\/+$/, '');
    if (!URL.canParse(endpoint)) throw new PullError(`HF_ENDPOINT is no URL: '${endpoint}'`);
    const directory = await pullModel(
      { ...options, pattern: options.file, hubToken: process.env.HF_TOKEN || undefined, endpoint },
      {
        progress,
        retries: {
          triesMax: TRIES_MAX,
          waitMs: RETRY_MS,
          signal: stopping.signal,
          onWait: (reason, waitMs) =>
            progress.say(`${reason}; trying again${waitMs === 0 ? '' : ` in ${waitMs / 1000} s`}`),
        },
      },
    );
    progress.say(`${directory} is ready. Serve it with: nereid --model-repository=${repository}`);
    return 0;
  } catch (thrown) {
    if (stopping.signal.aborted) {
      progress.say(
        `stopped. What was fetched is kept; the same command goes on with it: nereid pull ${source} …`,
      );
      return code;
    }
    if (!isForTheUser(thrown)) throw thrown;
    progress.clear();
    process.stderr.write(`error: ${thrown.message}\n`);
    return 1;
  }
}

/** Errors of the file system are the user's to mend, too. */
function isForTheUser(thrown: unknown): thrown is Error {
  return thrown instanceof PullError || (thrown instanceof Error && 'syscall' in thrown);
}
