// The pipeline as code: the models of the ensemble, asked one after another. Two things that an ensemble cannot do: an image
// without text ends after the search, and lines are read in groups of like width, all groups at once.
import { defineModel, Tensor } from 'nereid/model';

/** As many lines as the package reads at once. */
const GROUP_LINES_MAX = 6;

/** Width by height of a box's pixels, as they are cut out: an upright box is turned on its side. */
function ratioOf(box) {
  const side = (a, b) => Math.hypot(box[2 * a] - box[2 * b], box[2 * a + 1] - box[2 * b + 1]);
  const width = Math.trunc(Math.max(side(0, 1), side(2, 3)));
  const height = Math.trunc(Math.max(side(0, 3), side(1, 2)));
  return height / width >= 1.5 ? height / width : width / height;
}

function rowOf(tensor, row) {
  const length = tensor.data.length / tensor.shape[0];
  return tensor.dataAs('FP32').subarray(row * length, (row + 1) * length);
}

/** Some rows of a tensor, by their numbers. */
function pick(tensor, rows, name) {
  const data = Float32Array.from(rows.flatMap((row) => [...rowOf(tensor, row)]));
  return Tensor.from(name, data, [rows.length, ...tensor.shape.slice(1)]);
}

function groupsByRatio(corners) {
  const ratios = Array.from({ length: corners.shape[0] }, (_, i) => ratioOf(rowOf(corners, i)));
  const rows = [...ratios.keys()].sort((a, b) => ratios[a] - ratios[b]);
  const groups = [];
  while (rows.length > 0) groups.push(rows.splice(0, GROUP_LINES_MAX));
  return groups;
}

function answerOf(lines) {
  const texts = lines.map(({ text }) => text);
  return {
    outputs: [
      Tensor.fromStrings('TEXT', texts),
      Tensor.from(
        'SCORE',
        Float32Array.from(lines, ({ score }) => score),
      ),
      Tensor.from('BOX', Float32Array.from(lines.flatMap(({ box }) => [...box])), [lines.length, 4, 2]),
    ],
  };
}

async function readImage(request, { infer }) {
  const ask = async (model, inputs, names) => {
    const response = await infer(model, { inputs, outputs: names, request });
    return names.map((name) => response.output(name));
  };
  const [picture, geometry, pixels] = await ask(
    'ocr_detect_pre',
    [request.input('FILE')],
    ['PICTURE', 'GEOMETRY', 'PIXELS'],
  );
  const [map] = await ask('ocr_detect', [pixels.rename('x')], ['sigmoid_0.tmp_0']);
  const found = [picture, geometry, map.rename('MAP')];
  const [corners, boxes, lines] = await ask('ocr_detect_post', found, ['CORNERS', 'BOXES', 'LINES']);
  if (corners.shape[0] === 0) return answerOf([]);

  const [directions] = await ask('ocr_orient', [lines.rename('x')], ['save_infer_model/scale_0.tmp_1']);
  const readGroup = async (rows) => {
    const ofRows = [pick(corners, rows, 'CORNERS'), pick(directions, rows, 'DIRECTIONS')];
    const [linePixels] = await ask('ocr_recognize_pre', [picture, ...ofRows], ['LINES']);
    const [scores] = await ask('ocr_recognize', [linePixels.rename('x')], ['softmax_11.tmp_0']);
    const inputs = [scores.rename('SCORES'), pick(boxes, rows, 'BOXES')];
    const [text, score, box] = await ask('ocr_decode', inputs, ['TEXT', 'SCORE', 'BOX']);
    return text.strings().map((line, i) => ({ text: line, score: score.data[i], box: rowOf(box, i) }));
  };
  const read = (await Promise.all(groupsByRatio(corners).map(readGroup))).flat();
  // Back into the order of the boxes. Lines that could not be read have gone.
  const places = new Map(Array.from({ length: boxes.shape[0] }, (_, i) => [String(rowOf(boxes, i)), i]));
  return answerOf(read.sort((a, b) => places.get(String(a.box)) - places.get(String(b.box))));
}

export default defineModel({
  config: {
    inputs: [{ name: 'FILE', datatype: 'BYTES', dims: [1] }],
    outputs: [
      { name: 'TEXT', datatype: 'BYTES', dims: [-1] },
      { name: 'SCORE', datatype: 'FP32', dims: [-1] },
      { name: 'BOX', datatype: 'FP32', dims: [-1, 4, 2] },
    ],
  },
  execute: (requests, context) => requests.map((request) => readImage(request, context)),
});
