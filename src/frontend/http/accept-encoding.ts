// Which compression a response gets: the known coding with the largest weight, the earlier one on a tie.
// Read as Triton reads it: no blanks inside an item, exact lower-case names, a weight that is no number is none.

export type Coding = 'identity' | 'gzip' | 'deflate';

export function chooseEncoding(accept: string): Coding {
  let best: Coding = 'identity';
  let bestWeight = 0;
  for (const item of accept.split(',')) {
    const [name, weightText] = item.trim().split(';q=');
    if (name !== 'identity' && name !== 'gzip' && name !== 'deflate') continue;
    const weight = weightText === undefined ? 1 : Number.parseFloat(weightText);
    if (weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return best;
}
