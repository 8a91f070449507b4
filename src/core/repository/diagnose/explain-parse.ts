// Why config.pbtxt could not be read: one rule per reason of the parser. The error's own text already shows the
// line and a caret; here is what to do about it.

import type { PbtxtError } from '../../../wire/pbtxt/pbtxt-error.ts';
import { configPath, type Explanation, type ModelFacts } from './explanation.ts';

interface ParseRule {
  readonly pattern: RegExp;
  explain(match: RegExpExecArray): { what: string; why?: string; fix: string };
}

const PARSE_RULES: readonly ParseRule[] = [
  {
    pattern: /has no field named "(.*?)"\. Did you mean "(.*)"\?$/,
    explain: ([, given, meant]) => ({
      what: `'${given}' is no field; '${meant}' is probably meant`,
      fix: `write ${meant} in place of ${given}`,
    }),
  },
  {
    pattern: /Message type "(?:.*\.)?(.*?)" has no field named "(.*?)"\.$/,
    explain: ([, message, given]) => ({
      what: `'${given}' is no field of ${message}`,
      why: 'a misspelt or misplaced field would otherwise be ignored in silence',
      fix: `remove ${given}, or move it out of or into the { } where it belongs`,
    }),
  },
  {
    pattern: /Unknown enumeration value of "(.*?)" for field "(.*?)"\.(?: Did you mean "(.*)"\?)?$/,
    explain: ([, given = '', field, meant]) => {
      const right = meant ?? (field === 'data_type' ? `TYPE_${given}` : undefined);
      const fix =
        right === undefined ? `use one of the values that ${field} can have` : `write ${field}: ${right}`;
      return { what: `'${given}' is no value of ${field}`, fix };
    },
  },
  {
    pattern: /Expected integer or identifier, got: ["']?(.*?)["']?$/,
    explain: ([, given]) => ({
      what: 'a name stands in quotation marks',
      why: 'values such as TYPE_FP32 or KIND_CPU are names, not texts',
      fix: `write ${given} without quotation marks`,
    }),
  },
  {
    pattern: /Expected string, got: (.*)$/,
    explain: ([, given]) => ({
      what: 'a text is not in quotation marks',
      fix: `write "${given}" in place of ${given}`,
    }),
  },
  {
    pattern: /Expected integer, got: (.*)$/,
    explain: ([, given]) => ({
      what: `a whole number is expected where '${given}' stands`,
      fix: given === '[' ? 'write one number, without [ ]: this field is no list' : 'write a whole number',
    }),
  },
  {
    pattern: /found end of text|Expected "[}>\]]", found ""/,
    explain: () => ({
      what: 'the file ends inside { } or [ ]',
      fix: 'close the last { or [ that was opened',
    }),
  },
  {
    pattern: /Non-repeated field "(.*)" is specified multiple times/,
    explain: ([, field]) => ({
      what: `'${field}' is written twice`,
      fix: `keep one of the ${field} lines`,
    }),
  },
  {
    pattern: /Field "(.*)" is specified along with field "(.*?)"/,
    explain: ([, field, other]) => ({
      what: `'${field}' and '${other}' exclude each other`,
      why: 'a model has one of them',
      fix: `keep ${field} or ${other}, and remove the other`,
    }),
  },
  {
    pattern: /Expected identifier, got: (.*)$/,
    explain: ([, given]) => ({
      what:
        given === '{' || given?.startsWith('"')
          ? 'the file looks like JSON'
          : `a field name is expected, not '${given}'`,
      why: 'config.pbtxt is protobuf text: names without quotation marks, no { } around the whole',
      fix: 'write for example  max_batch_size: 8',
    }),
  },
  {
    pattern: /Expected "(.*?)", found "(.*?)"/,
    explain: ([, wanted, found]) => ({
      what: `'${wanted}' is missing before '${found}'`,
      fix: `put ${wanted} where the caret stands`,
    }),
  },
  {
    pattern: /Invalid value for boolean field "(.*?)"/,
    explain: ([, field]) => ({
      what: `'${field}' is yes or no`,
      fix: `write ${field}: true or ${field}: false`,
    }),
  },
];

export function explainParseError(error: PbtxtError, facts: ModelFacts): Explanation {
  const place = `${configPath(facts)}:${error.line}:${error.column}`;
  for (const rule of PARSE_RULES) {
    const match = rule.pattern.exec(error.reason);
    if (match === null) continue;
    const { what, why, fix } = rule.explain(match);
    return {
      what: `config.pbtxt line ${error.line} cannot be read: ${what}`,
      why: why ?? '',
      fix: [`at ${place} ${fix}`],
    };
  }
  return {
    what: `config.pbtxt line ${error.line} cannot be read`,
    why: '',
    fix: [`at ${place} look at the place above the caret, and just before it`],
  };
}
