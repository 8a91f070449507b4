// The type of a comparable answer: JSON, of which some expected objects allow the answer more keys.
import type { Json } from './json.ts';

/** The answer may have more keys: any ("superset"), or only default-valued ones ("defaults"). */
export type Slack = 'superset' | 'defaults';
export const SLACK = Symbol('slack');

export type NormalObject = { [SLACK]?: Slack; [key: string]: Normal };
export type Normal = Json | NormalObject | Normal[];
