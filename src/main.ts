// Entry of the program: argv → command → server → signals. Exits with 0 after an orderly end, else with 1.

import { parseCommand } from './cli/command.ts';
import type { ServerOptions } from './cli/options.ts';
import { usageText } from './cli/usage.ts';
import { UsageError } from './cli/usage-error.ts';
import { StatusError } from './domain/status.ts';
import { createLogger } from './lib/logger.ts';
import { readVersion } from './lib/version.ts';
import { LOAD_FAILURE, NereidServer } from './server.ts';

const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

async function main(argv: readonly string[]): Promise<void> {
  const command = parseCommand(argv);
  switch (command.kind) {
    case 'help':
      process.stdout.write(usageText());
      return;
    case 'version':
      process.stdout.write(`nereid ${readVersion()}\n`);
      return;
    case 'validate': {
      const { validateRepository } = await import('./validate-command.ts');
      process.exitCode = await validateRepository(command);
      return;
    }
    case 'pull': {
      const { pull } = await import('./pull-command.ts');
      process.exitCode = await pull(command.options);
      return;
    }
    case 'serve':
      await serve(command.options);
  }
}

async function serve(options: ServerOptions): Promise<void> {
  const logger = createLogger({ settings: options.log, component: 'main' });
  for (const warning of options.warnings) logger.warn(warning);
  const server = new NereidServer(options, logger);
  let isStopping = false;
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      process.stdout.write(`Signal (${number}) received.\n`);
      if (isStopping) {
        server.abandon();
        process.exit(1);
      }
      isStopping = true;
      void server.stop().then((isClean) => end(logger, isClean ? 0 : 1));
    });
  }
  try {
    await server.start();
  } catch (thrown) {
    if (isStopping) return;
    server.abandon();
    await logger.flush();
    const error = StatusError.from(thrown);
    process.stderr.write(`error: creating server: ${error.describe().replace(': ', ' - ')}\n`);
    if (error.message === LOAD_FAILURE) {
      for (const path of options.repository.paths) {
        process.stderr.write(`To see what is wrong and how to mend it: nereid validate ${path}\n`);
      }
    }
    process.exit(1);
  }
}

async function end(logger: ReturnType<typeof createLogger>, code: number): Promise<void> {
  await logger.close();
  process.exit(code);
}

main(process.argv.slice(2)).catch((thrown: unknown) => {
  if (thrown instanceof UsageError) {
    if (thrown.isUsageShown) process.stderr.write(`${usageText()}\n`);
    process.stderr.write(`${thrown.message}\n`);
  } else process.stderr.write(`${thrown instanceof Error ? thrown.stack : String(thrown)}\n`);
  process.exit(1);
});
