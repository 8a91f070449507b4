// Answers in the form in which two servers are compared: without paths, line numbers, times and process ids, with the
// text of SEEN parsed, and outputs by name.
import type { Answer } from './cases.ts';

interface Output {
  readonly name: string;
  readonly data?: readonly unknown[];
  readonly raw?: string;
}

/** Everything that is a text on the way down is cleaned, everything else kept. */
export function normalForm(answer: Answer, repository: string): Answer {
  const { outputs, answers, parameters, ...rest } = answer;
  const normal = clean(rest, repository) as Answer;
  return {
    ...normal,
    ...(parameters !== undefined && { parameters: sorted(plainNumbers(parameters) as object) }),
    ...(Array.isArray(outputs) && { outputs: normalOutputs(outputs as Output[], repository) }),
    ...(Array.isArray(answers) && { answers: answers.map((one) => normalForm(one as Answer, repository)) }),
  };
}

/** Log lines come through two pipes, so only those of one pipe have an order. */
export function inOrder(answers: readonly Answer[] | undefined): unknown {
  return answers?.map((answer) =>
    Array.isArray(answer.lines) ? { ...answer, lines: [...answer.lines].sort() } : answer,
  );
}

function normalOutputs(outputs: readonly Output[], repository: string): object {
  const byName = outputs.map((output) => {
    const { name, data, raw, ...rest } = output;
    const text = name !== 'SEEN' ? undefined : raw === undefined ? data?.[0] : textOf(raw);
    const content =
      typeof text === 'string'
        ? { seen: clean(JSON.parse(text), repository) }
        : raw === undefined
          ? { data }
          : { raw };
    return [name, { ...rest, ...content }] as const;
  });
  return sorted(Object.fromEntries(byName));
}

/** The first element of a BYTES tensor. */
function textOf(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  return bytes.subarray(4, 4 + bytes.readUInt32LE()).toString();
}

function clean(value: unknown, repository: string): unknown {
  if (typeof value === 'string') return cleanText(value, repository);
  if (Array.isArray(value)) return value.map((element) => clean(element, repository));
  if (typeof value !== 'object' || value === null) return value;
  return sorted(Object.fromEntries(Object.entries(value).map(([key, one]) => [key, clean(one, repository)])));
}

function cleanText(text: string, repository: string): string {
  return (
    text
      .replaceAll(repository, 'REPOSITORY')
      .replaceAll(process.env.NEREID_TEST_PYTHON ?? 'python3', 'PYTHON')
      // Newer interpreters have no frames of comprehensions; those of the module and of the import system tell nothing.
      .replace(
        /^ {2}(?:\S*\(\d+\): <listcomp>|<frozen importlib.*|\S*triton_python_backend_utils\.py\(.*)\n/gm,
        '',
      )
      .replaceAll(/ at 0x[0-9a-f]+/g, ' at ADDRESS')
      // Triton reads memory that is gone here, and says another number each time.
      .replaceAll(/DLDevice type -?\d+/g, 'DLDevice type N')
      // Of a traceback's line the file's name and the function; paths and lines differ between interpreters.
      .replace(/^( {2})\S*?([^/\s]+)\(\d+\): /gm, '$1$2(N): ')
      // A log line: the letter of its level, then the file that said it.
      .replace(/^([IWEV])\d{4} [\d:.]+ \d+ ([\w.]+):\d+\]/, '$1 $2]')
  );
}

/** protobufjs gives 64-bit integers as objects or texts. */
function plainNumbers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      typeof one === 'object' && one !== null ? Number(one) : one,
    ]),
  );
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
