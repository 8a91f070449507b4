// Reads a handwritten digit from a PNG file: unpacks the picture, asks the ONNX model `digits`, names the best score.
//
//     curl -d "{\"PNG\":\"$(base64 < examples/images/seven.png | tr -d '\n')\"}" \
//       localhost:8000/v2/models/read_digit/generate
import { inflateSync } from 'node:zlib';
import { defineModel, ModelError, Tensor } from 'nereid/model';

const NAMES = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
const SIDE = 8;

/** The pixels, 0 to 1, of an 8-bit grayscale PNG without filters, as the example images are. */
function readPng(file) {
  if (file.toString('latin1', 1, 4) !== 'PNG') throw new ModelError('INVALID_ARG', 'PNG must be a picture in base64');
  const packed = [];
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    if (file.toString('latin1', at + 4, at + 8) !== 'IDAT') continue;
    packed.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)));
  }
  const rows = inflateSync(Buffer.concat(packed));
  // Each row starts with one byte that names its filter.
  return Float32Array.from({ length: SIDE * SIDE }, (_, i) => rows[Math.floor(i / SIDE) * (SIDE + 1) + 1 + (i % SIDE)] / 255);
}

export default defineModel({
  config: {
    inputs: [{ name: 'PNG', datatype: 'BYTES', dims: [1] }],
    outputs: [
      { name: 'DIGIT', datatype: 'BYTES', dims: [1] },
      { name: 'SCORE', datatype: 'FP32', dims: [1] },
    ],
  },

  async execute(requests, { infer }) {
    return requests.map(async (request) => {
      const pixels = readPng(Buffer.from(request.input('PNG').strings()[0], 'base64'));
      const inputs = [Tensor.from('IMAGE', pixels, [1, 1, SIDE, SIDE])];
      const scores = (await infer('digits', { inputs, request })).output('SCORES').dataAs('FP32');
      const best = scores.indexOf(Math.max(...scores));
      return {
        outputs: [
          Tensor.fromStrings('DIGIT', [NAMES[best]]),
          Tensor.from('SCORE', scores.slice(best, best + 1)),
        ],
      };
    });
  },
});
