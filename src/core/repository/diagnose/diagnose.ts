// From an error of a load to an explanation for a person: looks the text up in the tables beside this file.
// Pure; what is not in a table is passed on as it is, because a wrong explanation is worse than none.

import type { StatusError } from '../../../domain/status.ts';
import { PbtxtError } from '../../../wire/pbtxt/pbtxt-error.ts';
import { ENSEMBLE_RULES } from './explain-ensemble.ts';
import { FILE_RULES } from './explain-files.ts';
import { explainParseError } from './explain-parse.ts';
import { SETTING_RULES } from './explain-settings.ts';
import { TENSOR_RULES } from './explain-tensors.ts';
import { configPath, type Explanation, type ModelFacts } from './explanation.ts';

/** The more particular tables come first. */
const RULES = [...ENSEMBLE_RULES, ...TENSOR_RULES, ...FILE_RULES, ...SETTING_RULES];

export function diagnose(error: StatusError, facts: ModelFacts): Explanation {
  if (error instanceof PbtxtError) return explainParseError(error, facts);
  for (const rule of RULES) {
    const match = rule.pattern.exec(error.message);
    if (match !== null) return rule.explain(match, facts);
  }
  return {
    what: 'the model cannot be loaded',
    why: '',
    fix: [`correct ${configPath(facts)} or the model file as the error says`],
  };
}
