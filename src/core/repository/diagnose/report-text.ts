// The report of `nereid validate` as text: one line per model, an indented block per problem, a sum at the end.
// Pure; whether there are colours is the caller's knowledge.

import type { ModelReport } from '../check-model.ts';
import { type Explanation, plural } from './explanation.ts';

export interface Paint {
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warn: (text: string) => string;
  readonly dim: (text: string) => string;
}

const sgr = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`;
const plain = (text: string) => text;

export const COLOURS: Paint = { good: sgr(32), bad: sgr(31), warn: sgr(33), dim: sgr(2) };
export const NO_COLOURS: Paint = { good: plain, bad: plain, warn: plain, dim: plain };

const INDENT = '     ';

export function modelText(report: ModelReport, layout: { nameWidth: number; paint: Paint }): string {
  const { paint } = layout;
  const name = report.name.padEnd(layout.nameWidth);
  const lines: string[] = [];
  if (report.served !== undefined) {
    const state = report.warnings.length === 0 ? paint.good('ok ') : paint.warn('ok ');
    lines.push(`${state}  ${name}  ${summaryOf(report)}`);
  }
  for (const { error, explanation } of report.problems) {
    lines.push(`${paint.bad('bad')}  ${name}  ${explanation.what}`);
    lines.push(...labelled('error', error.split('\n')).map(paint.dim), ...reasonAndFix(explanation));
  }
  for (const warning of report.warnings) {
    lines.push(`${INDENT}${paint.warn('warning:')} ${warning.what}`, ...reasonAndFix(warning));
  }
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

export function totalText(reports: readonly ModelReport[]): string {
  const good = reports.filter((report) => report.problems.length === 0);
  const warningCount = reports.reduce((sum, report) => sum + report.warnings.length, 0);
  const warnings = warningCount === 0 ? '' : `, ${plural(warningCount, 'warning')}`;
  return `${plural(reports.length, 'model')}: ${good.length} ok, ${reports.length - good.length} with problems${warnings}\n`;
}

/** `1 version, onnxruntime, batches up to 32, 2 instances` */
function summaryOf({ served, servedVersions, versionCount }: ModelReport): string {
  const { config, instanceCount } = served!;
  const versions =
    servedVersions.length === versionCount
      ? plural(versionCount, 'version')
      : `version ${servedVersions.join(', ')} of ${versionCount}`;
  const batches = config.max_batch_size > 0 ? `batches up to ${config.max_batch_size}` : 'no batching';
  if (config.ensemble_scheduling !== undefined) {
    return [versions, 'ensemble', batches, plural(config.ensemble_scheduling.step.length, 'step')].join(', ');
  }
  if (config.router !== undefined) {
    return [versions, 'router', plural(config.router.target.length, 'target')].join(', ');
  }
  return [versions, config.backend, batches, plural(instanceCount, 'instance')].join(', ');
}

function reasonAndFix(explanation: Explanation): string[] {
  const why = explanation.why === '' ? [] : labelled('why', [explanation.why]);
  return [...why, ...labelled('fix', explanation.fix)];
}

/** The label stands before the first line; the others are aligned with it. */
function labelled(label: string, lines: readonly string[]): string[] {
  return lines.map((line, i) => `${INDENT}${(i === 0 ? `${label}:` : '').padEnd(7)}${line}`);
}
