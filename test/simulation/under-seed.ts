// Runs a simulation so that whatever it finds wrong names the seed that shows it again.

export interface SeededSimulation<Result> {
  run(events: number): void;
  end(): Promise<Result>;
  /** Where the simulation stands and what it was made of. */
  readonly situation: string;
}

export async function underSeed<Result>(
  seed: number,
  events: number,
  simulation: SeededSimulation<Result>,
): Promise<Result> {
  // Most of the errors in a simulation are answers, and their stacks would be half of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 1;
  try {
    simulation.run(events);
    return await simulation.end();
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Error(`seed ${seed}: ${cause}\n  ${simulation.situation}`, { cause: thrown });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
