// An object of lists as JSON text that grows list by list: the log probabilities of a whole answer. Written as they come, since
// for thousands of tokens it would hold up the event loop to write them in one go. chat-answer.ts and completion-endpoint.ts use it.

import type { LogprobColumns } from './token-logprobs.ts';

export class ColumnText {
  /** Null: the member is null. */
  readonly #columns = new Map<string, string[] | null>();

  /** Appends each list to the list of its name. */
  add(columns: LogprobColumns): void {
    for (const [name, values] of Object.entries(columns)) {
      const known = this.#columns.get(name) ?? (values === null ? null : []);
      this.#columns.set(name, known);
      if (known !== null && values !== null && values.length > 0)
        known.push(JSON.stringify(values).slice(1, -1));
    }
  }

  get text(): string {
    const members = Array.from(this.#columns, ([name, values]) => {
      const list = values === null ? 'null' : `[${values.join(',')}]`;
      return `${JSON.stringify(name)}:${list}`;
    });
    return `{${members.join(',')}}`;
  }
}
