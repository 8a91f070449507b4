"""Driver of silero.test.ts: the Silero voice activity detector of the PyPI package silero-vad as a sequence model whose
state the server keeps.

    silero.py prepare DIR FILE          writes a model repository with the network in FILE
    silero.py check GRPC_URL FILE       streams audio, compares with the network run by onnxruntime here

`silero` is the file as it is: its state has the batch in the middle, so it is served one row at a time, and up to 32
sequences are open at once. `silero_rows` has its state transposed, so that streams that come together run as one batch.
"""
import os
import queue
import shutil
import sys

import numpy as np
import tritonclient.grpc as triton

RATE = 16_000
CHUNK, CONTEXT = 512, 64  # samples, as the package's OnnxWrapper takes them at this rate
STREAMS, STEPS = 32, 24
TOLERANCE = 1e-4

SILERO = """backend: "onnxruntime"
input [ { name: "input" data_type: TYPE_FP32 dims: [ 1, 576 ] },
        { name: "sr" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ -1, 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  oldest { max_candidate_sequences: 32 }
  state [ { input_name: "state" output_name: "stateN" data_type: TYPE_FP32 dims: [ 2, 1, 128 ] } ]
}
"""
SILERO_ROWS = """backend: "onnxruntime"
max_batch_size: 32
input [ { name: "input" data_type: TYPE_FP32 dims: [ 576 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
sequence_batching {
  max_sequence_idle_microseconds: 60000000
  direct { max_queue_delay_microseconds: 2000 }
  state [ {
    input_name: "state_rows" output_name: "stateN_rows" data_type: TYPE_FP32 dims: [ 2, 128 ]
    initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 2, 128 ] zero_data: true }
  } ]
}
"""


def prepare(folder, path):
    for name, config in (("silero", SILERO), ("silero_rows", SILERO_ROWS)):
        os.makedirs(os.path.join(folder, name, "1"))
        with open(os.path.join(folder, name, "config.pbtxt"), "w") as file:
            file.write(config)
    shutil.copy(path, os.path.join(folder, "silero", "1", "model.onnx"))
    write_rows(path, os.path.join(folder, "silero_rows", "1", "model.onnx"))


def write_rows(path, target):
    """The network with the batch in front of its state and the rate fixed."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(path)
    graph = model.graph
    before = helper.make_node("Transpose", ["state_rows"], ["state"], perm=[1, 0, 2])
    after = helper.make_node("Transpose", ["stateN"], ["stateN_rows"], perm=[1, 0, 2])
    nodes = [before, *graph.node, after]
    del graph.node[:], graph.input[:], graph.output[:]
    graph.node.extend(nodes)
    graph.initializer.append(numpy_helper.from_array(np.array(RATE, np.int64), "sr"))
    described = helper.make_tensor_value_info
    graph.input.append(described("input", TensorProto.FLOAT, ["N", CONTEXT + CHUNK]))
    graph.input.append(described("state_rows", TensorProto.FLOAT, ["N", 2, 128]))
    graph.output.append(described("output", TensorProto.FLOAT, ["N", 1]))
    graph.output.append(described("stateN_rows", TensorProto.FLOAT, ["N", 2, 128]))
    onnx.save(model, target)


def make_audio(stream):
    """Silence, noise, and for most streams something like speech: a voice with formants, syllables and pauses."""
    random = np.random.default_rng(stream)
    time = np.arange(STEPS * CHUNK) / RATE
    if stream % 8 == 0:
        return np.zeros(len(time), np.float32)
    if stream % 8 == 1:
        return (0.1 * random.standard_normal(len(time))).astype(np.float32)
    pitch = random.uniform(90, 230) * (1 + 0.05 * np.sin(2 * np.pi * 3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = random.uniform([400, 1000, 2200], [800, 1800, 3000])
    voice = np.zeros(len(time))
    for harmonic in range(1, 25):
        gain = sum(np.exp(-(((harmonic * pitch - formant) / 180) ** 2)) for formant in formants)
        voice += gain * np.sin(harmonic * phase)
    syllables = np.clip(np.sin(2 * np.pi * random.uniform(2, 5) * time + random.uniform(0, 6)), 0, None)
    return (0.3 * voice * syllables + 0.003 * random.standard_normal(len(time))).astype(np.float32)


def windows_of(audio):
    """Each chunk behind the last samples of the one before it, as OnnxWrapper joins them."""
    padded = np.concatenate([np.zeros(CONTEXT, np.float32), audio])
    return [padded[None, at : at + CONTEXT + CHUNK] for at in range(0, STEPS * CHUNK, CHUNK)]


def expected_of(session, windows):
    """What OnnxWrapper.__call__ computes, chunk after chunk."""
    state = np.zeros((2, 1, 128), np.float32)
    probabilities = []
    for window in windows:
        output, state = session.run(None, {"input": window, "state": state, "sr": np.array(RATE, np.int64)})
        probabilities.append(float(output[0, 0]))
    return probabilities


def inputs_of(model, window):
    tensors = [triton.InferInput("input", list(window.shape), "FP32")]
    tensors[0].set_data_from_numpy(window)
    if model == "silero":
        rate = triton.InferInput("sr", [1], "INT64")
        rate.set_data_from_numpy(np.array([RATE], np.int64))
        tensors.append(rate)
    return tensors


def stream_all(client, model, windows):
    """Chunk by chunk through all streams in turn; the next chunks leave before the answers of the last are in."""
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for step in range(STEPS):
        for stream in range(STREAMS):
            client.async_stream_infer(
                model,
                inputs_of(model, windows[stream][step]),
                request_id="%d %d" % (stream, step),
                sequence_id=stream + 1,
                sequence_start=step == 0,
                sequence_end=step == STEPS - 1,
            )
    got = np.full((STREAMS, STEPS), np.nan)
    for _ in range(STREAMS * STEPS):
        result, error = answers.get(timeout=60)
        assert error is None, error
        stream, step = map(int, result.get_response().id.split())
        got[stream, step] = result.as_numpy("output")[0, 0]
    client.stop_stream()
    return got


def check(url, path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    windows = [windows_of(make_audio(stream)) for stream in range(STREAMS)]
    expected = np.array([expected_of(session, stream) for stream in windows])
    # Otherwise equal answers would show nothing about states.
    assert expected.max() > 0.7 and expected.min() < 0.05, (expected.min(), expected.max())
    stateless = [expected_of(session, [window])[0] for stream in windows for window in stream]
    assert np.abs(np.reshape(stateless, expected.shape) - expected).max() > 0.1
    client = triton.InferenceServerClient(url)
    for model in ("silero", "silero_rows"):
        names = [tensor.name for tensor in client.get_model_metadata(model).inputs]
        assert "state" not in " ".join(names), names
        for again in range(2):
            got = stream_all(client, model, windows)
            worst = np.abs(got - expected).max()
            assert worst < TOLERANCE, f"{model}: {worst} off"
            print(f"{model}: {got.size} probabilities of {STREAMS} streams, worst difference {worst:.2e}")
    stats = client.get_inference_statistics("silero_rows").model_stats[0]
    assert stats.execution_count < stats.inference_count, stats
    print(f"all equal; {stats.inference_count} rows in {stats.execution_count} executions")


if __name__ == "__main__":
    {"prepare": prepare, "check": check}[sys.argv[1]](*sys.argv[2:])
