// A clock that knows how many of its timers are set, to see that none is left behind.
import type { Clock } from '../../src/lib/clock.ts';

export function countTimers(clock: Clock): { readonly clock: Clock; timerCount(): number } {
  let count = 0;
  const setTimer: Clock['setTimer'] = (delayMs, fn) => {
    let isSet = true;
    count++;
    const clear = () => {
      if (isSet) count--;
      isSet = false;
    };
    const cancel = clock.setTimer(delayMs, () => {
      clear();
      fn();
    });
    return () => {
      clear();
      cancel();
    };
  };
  return { clock: { ...clock, setTimer }, timerCount: () => count };
}
