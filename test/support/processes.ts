// What the kernel says about processes: children, open descriptors, memory. Linux only, like the tests that use it.
import { readdirSync, readFileSync } from 'node:fs';

/** Pass as node:test's `skip` option. */
export const procSkip: string | false = process.platform === 'linux' ? false : 'needs /proc';

/** Living children of `pid`; a zombie is not one. */
export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^[0-9]+$/.test(name)) continue;
    const stat = statOf(Number(name));
    if (stat !== undefined && stat.parent === pid && stat.state !== 'Z') children.push(Number(name));
  }
  return children.sort((a, b) => a - b);
}

export function isAlive(pid: number): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.state !== 'Z';
}

/** "pid (name) state parent …", where the name may contain anything. */
function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: state!, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

export function descriptorCountOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

export function residentBytesOf(pid: number): number {
  const line = /VmRSS:\s+([0-9]+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return Number(line?.[1]) * 1024;
}

/** Processor time used so far, in milliseconds; the kernel counts in steps of ten. */
export function cpuMsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Its command line, or what it has put in its place. */
export function titleOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ');
}
