// Classifies one picture of a digit with nothing but fetch, sending and receiving binary tensors.
// The body of a binary request is a JSON head followed by the tensors' bytes; one header tells the
// length of the head, in both directions.
//
//     node --experimental-strip-types examples/clients/classify.ts examples/images/seven.png
import { readFileSync } from 'node:fs';
import { inflateSync } from 'node:zlib';

const url = process.env['NEREID_URL'] ?? 'localhost:8000';
const path = process.argv[2] ?? 'examples/images/seven.png';

/** The pixels (0..1) of an 8-bit grayscale PNG without filters, as the example images are written. */
function readPng(file: string): Float32Array {
  const data = readFileSync(file);
  const packed: Buffer[] = [];
  let width = 0;
  let height = 0;
  for (let at = 8; at < data.length; at += 12 + data.readUInt32BE(at)) {
    const kind = data.toString('latin1', at + 4, at + 8);
    const body = data.subarray(at + 8, at + 8 + data.readUInt32BE(at));
    if (kind === 'IHDR') [width, height] = [body.readUInt32BE(0), body.readUInt32BE(4)];
    if (kind === 'IDAT') packed.push(body);
  }
  const rows = inflateSync(Buffer.concat(packed));
  // Each row starts with one byte that names its filter.
  return Float32Array.from({ length: width * height }, (_, i) => {
    const row = Math.floor(i / width);
    return (rows[row * (width + 1) + 1 + (i % width)] ?? 0) / 255;
  });
}

/** A BYTES tensor: each element is a little-endian 32-bit length and that many bytes. */
function readBytesTensor(data: Buffer): string[] {
  const elements: string[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 4 + data.readUInt32LE(at);
    elements.push(data.toString('utf8', at + 4, end));
    at = end;
  }
  return elements;
}

const pixels = readPng(path);
const head = Buffer.from(
  JSON.stringify({
    inputs: [
      {
        name: 'IMAGE',
        shape: [1, 1, 8, 8],
        datatype: 'FP32',
        parameters: { binary_data_size: pixels.byteLength },
      },
    ],
    outputs: [{ name: 'SCORES', parameters: { classification: 3, binary_data: true } }],
  }),
);
const response = await fetch(`http://${url}/v2/models/digits/infer`, {
  method: 'POST',
  headers: { 'Inference-Header-Content-Length': String(head.length) },
  body: Buffer.concat([head, Buffer.from(pixels.buffer)]),
});
const answer = Buffer.from(await response.arrayBuffer());
if (!response.ok) throw new Error(answer.toString());

const headLength = Number(response.headers.get('inference-header-content-length'));
console.log(path);
for (const entry of readBytesTensor(answer.subarray(headLength))) {
  const [score, , label] = entry.split(':');
  console.log(`  ${label?.padEnd(6)} ${Number(score).toFixed(4)}`);
}
