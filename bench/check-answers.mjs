// Asks both servers the same question before any clock runs: a fast wrong answer is worth nothing.

/** ONNX Runtime may split a sum differently between thread counts; more than this is another model. */
const RELATIVE_ERROR_MAX = 1e-3;

export async function checkAnswers({ servers, model }) {
  const answers = await Promise.all(servers.map((server) => askOnce({ server, model })));
  const [first, ...others] = answers;
  const scale = first.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  if (!(scale > 0 && Number.isFinite(scale)))
    throw new Error(`${model.name}: the answer has no scale: ${scale}`);
  for (const other of others) {
    if (other.length !== first.length) throw new Error(`${model.name}: answers of different length`);
    const error = other.reduce((max, value, i) => Math.max(max, Math.abs(value - first[i])), 0);
    if (!(error / scale <= RELATIVE_ERROR_MAX)) {
      throw new Error(`${model.name}: the answers of the servers differ by ${error} at a scale of ${scale}`);
    }
  }
}

async function askOnce({ server, model }) {
  const { name, shape } = model.input;
  const tensor = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
  for (let i = 0; i < tensor.length; i++) tensor[i] = Math.sin(i);
  const header = Buffer.from(
    JSON.stringify({
      inputs: [
        {
          name,
          datatype: 'FP32',
          shape: [1, ...shape],
          parameters: { binary_data_size: tensor.byteLength },
        },
      ],
      outputs: [{ name: 'OUTPUT' }],
    }),
  );
  const response = await fetch(`http://${server.url}/v2/models/${model.name}/infer`, {
    method: 'POST',
    headers: { 'Inference-Header-Content-Length': String(header.length) },
    body: Buffer.concat([header, Buffer.from(tensor.buffer)]),
  });
  if (!response.ok)
    throw new Error(`${server.name}, ${model.name}: ${response.status} ${await response.text()}`);
  return (await response.json()).outputs[0].data;
}
