// How many rows a device's step may have while texts are running: as many as it computes in the time that those may wait for
// their next token. More rows at once make prompts cheaper and their first token sooner. Decides only; the
// engine measures. docs/adr/0010 has the numbers.

/** What a running text may wait for a step with prompts. */
const STEP_MS_AIM = 50;
/** With fewer rows a step of a small model is mostly the way to the device and back. */
const ROWS_MIN = 512;
/** Smaller steps say nothing about a row. */
const ROWS_TOLD_MIN = 256;
const WEIGHT = 0.2;

export class StepPace {
  #msPerRow: number | undefined;

  noteStep(rowCount: number, durationMs: number): void {
    if (rowCount < ROWS_TOLD_MIN) return;
    const msPerRow = durationMs / rowCount;
    this.#msPerRow =
      this.#msPerRow === undefined ? msPerRow : this.#msPerRow + (msPerRow - this.#msPerRow) * WEIGHT;
  }

  get rowsMax(): number {
    return this.#msPerRow === undefined
      ? ROWS_MIN
      : Math.max(ROWS_MIN, Math.floor(STEP_MS_AIM / this.#msPerRow));
  }
}
