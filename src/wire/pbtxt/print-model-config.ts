// ModelConfig → text format that a person can read and edit: declaration order, defaults left out, short
// lists on one line. What it prints parses back to the same config.

import type { FieldSchema } from '../../domain/message-schema.ts';
import {
  defaultOf,
  type FieldValue,
  type MessageValue,
  sortedMapEntries,
} from '../../domain/message-value.ts';
import type { ModelConfig } from '../../domain/model-config.ts';
import { messageSchemaOf } from '../../domain/model-config-schema.ts';
import { quoteLiteral } from './string-literal.ts';

export function printModelConfig(config: ModelConfig): string {
  const lines: string[] = [];
  printFields('ModelConfig', config as unknown as MessageValue, { lines, indent: '' });
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

interface Page {
  readonly lines: string[];
  readonly indent: string;
}

function printFields(messageName: string, message: MessageValue, page: Page): void {
  for (const field of messageSchemaOf(messageName).fields) {
    const value = message[field.name];
    if (value !== undefined) printField(field, value, page);
  }
}

function printField(field: FieldSchema, value: FieldValue, page: Page): void {
  if (field.map !== undefined) {
    for (const [key, entry] of sortedMapEntries(field, value as MessageValue)) {
      printMapEntry(field, { key, entry }, page);
    }
  } else if (field.type === 'message') {
    const messages = field.repeated ? (value as MessageValue[]) : [value as MessageValue];
    for (const message of messages) printMessage(field, message, page);
  } else if (field.repeated) {
    const values = value as FieldValue[];
    if (values.length === 0) return;
    page.lines.push(`${page.indent}${field.name}: [ ${values.map((v) => scalarText(field, v)).join(', ')} ]`);
  } else if (field.oneof !== undefined || !Object.is(value, defaultOf(field))) {
    page.lines.push(`${page.indent}${field.name}: ${scalarText(field, value)}`);
  }
}

function printMessage(field: FieldSchema, message: MessageValue, page: Page): void {
  const opening = page.lines.length;
  page.lines.push(`${page.indent}${field.name} {`);
  printFields(field.typeName, message, { lines: page.lines, indent: `${page.indent}  ` });
  if (page.lines.length === opening + 1) page.lines[opening] = `${page.indent}${field.name} { }`;
  else page.lines.push(`${page.indent}}`);
}

function printMapEntry(field: FieldSchema, at: { key: string; entry: FieldValue }, page: Page): void {
  const { key, value } = field.map!;
  const inner: Page = { lines: page.lines, indent: `${page.indent}  ` };
  page.lines.push(`${page.indent}${field.name} {`);
  page.lines.push(
    `${inner.indent}key: ${key.type === 'string' ? quoteLiteral(at.key) : integerText(key, Number(at.key))}`,
  );
  if (value.type === 'message') printMessage(value, at.entry as MessageValue, inner);
  else page.lines.push(`${inner.indent}value: ${scalarText(value, at.entry)}`);
  page.lines.push(`${page.indent}}`);
}

function scalarText(field: FieldSchema, value: FieldValue): string {
  if (field.type === 'string') return quoteLiteral(String(value));
  if (field.type === 'float') return floatText(Number(value), 9);
  if (field.type === 'double') return floatText(Number(value), 17);
  return typeof value === 'number' ? integerText(field, value) : String(value);
}

/** The fewest digits that read back as the same value; 9 are enough for a float, 17 for a double. */
function floatText(value: number, digitsMax: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0.0';
  if (digitsMax === 17) return String(value);
  for (let digits = 1; digits < digitsMax; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(digitsMax)));
}

/** Above 2^53 a number stands for its neighbours too; the largest ones must still be written within the type. */
function integerText(field: FieldSchema, value: number): string {
  const max = field.type === 'uint64' ? 2n ** 64n - 1n : 2n ** 63n - 1n;
  const exact = BigInt(Math.trunc(value));
  if (exact > max) return String(max);
  return String(exact);
}
