// The scores of the recognition network to texts: at every place the best character, repetitions and blanks taken out
// (greedy CTC decoding). Lines that were read badly are left out, with their boxes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineModel, Tensor } from 'nereid/model';

const BLANK = 0;
const BOX_LENGTH = 8;
let characters;
let scoreMin;

/** `scores` holds the scores of all characters at one place after another. */
function readLine(scores) {
  let text = '';
  let total = 0;
  let count = 0;
  let last = BLANK;
  for (let at = 0; at < scores.length; at += characters.length) {
    let best = 0;
    for (let i = 1; i < characters.length; i++) if (scores[at + i] > scores[at + best]) best = i;
    if (best !== BLANK && best !== last) {
      text += characters[best];
      total += scores[at + best];
      count++;
    }
    last = best;
  }
  return { text, score: count === 0 ? 0 : total / count };
}

export default defineModel({
  initialize({ versionDirectory, parameters }) {
    const known = readFileSync(join(versionDirectory, 'characters.txt'), 'utf8').split('\n');
    characters = ['', ...known, ' '];
    scoreMin = Number(parameters.text_score);
  },

  execute(requests) {
    return requests.map((request) => {
      const scores = request.input('SCORES');
      const boxes = request.input('BOXES').dataAs('FP32');
      const [, places, width] = scores.shape;
      if (width !== characters.length) throw new Error(`${width} scores for ${characters.length} characters`);
      const lineLength = places * width;
      const lines = Array.from({ length: boxes.length / BOX_LENGTH }, (_, i) => ({
        ...readLine(scores.dataAs('FP32').subarray(i * lineLength, (i + 1) * lineLength)),
        box: boxes.subarray(i * BOX_LENGTH, (i + 1) * BOX_LENGTH),
      })).filter(({ score }) => score >= scoreMin);
      return {
        outputs: [
          Tensor.fromStrings(
            'TEXT',
            lines.map(({ text }) => text),
          ),
          Tensor.from(
            'SCORE',
            Float32Array.from(lines, ({ score }) => score),
          ),
          Tensor.from('BOX', Float32Array.from(lines.flatMap(({ box }) => [...box])), [lines.length, 4, 2]),
        ],
      };
    });
  },
});
