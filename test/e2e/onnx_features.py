"""Makes a repository of ONNX models that use less common features, and checks a server that serves it.

    onnx_features.py make DIR
    onnx_features.py check HOST:PORT
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

WEIGHTS = np.arange(4096 * 4, dtype=np.float32).reshape(4096, 4) / 1000


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def put(root, name, config=None, filename="model.onnx"):
    os.makedirs(os.path.join(root, name, "1"), exist_ok=True)
    if config:
        with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
            file.write(config)
    return os.path.join(root, name, "1", filename)


def matmul():
    return model(
        [helper.make_node("MatMul", ["X", "W"], ["Y"])],
        [value("X", T.FLOAT, ["N", 4096])],
        [value("Y", T.FLOAT, ["N", 4])],
        [numpy_helper.from_array(WEIGHTS, "W")],
    )


def make(root):
    path = put(root, "external_data")
    onnx.save_model(matmul(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert os.path.getsize(path) < 10_000
    onnx.save_model(matmul(), put(root, "other_name", 'backend: "onnxruntime" default_model_filename: "net.onnx"\n', "net.onnx"))
    for level in (-1, 1, 2):
        name = "level_minus_1" if level < 0 else f"level_{level}"
        config = f"optimization {{ graph {{ level: {level} }} }}\n"
        config += 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
        config += 'parameters { key: "execution_mode" value { string_value: "1" } }\n'
        config += 'parameters { key: "enable_mem_arena" value { string_value: "0" } }\n'
        onnx.save_model(matmul(), put(root, name, config))
    # the shape of the output depends on the data, so nobody knows it beforehand
    dynamic = model(
        [helper.make_node("NonZero", ["X"], ["Y"])], [value("X", T.FLOAT, ["A", "B"])], [value("Y", T.INT64, [2, "K"])]
    )
    onnx.save_model(dynamic, put(root, "dynamic_output"))
    half = model(
        [helper.make_node("Add", ["X", "X"], ["Y"])], [value("X", T.FLOAT16, ["N", 3])], [value("Y", T.FLOAT16, ["N", 3])]
    )
    onnx.save_model(half, put(root, "half"))
    make_ragged(root)
    gpu = 'optimization { execution_accelerators { cpu_execution_accelerator [ { name: "%s" } ] } }\n'
    onnx.save_model(matmul(), put(root, "no_openvino", gpu % "openvino"))
    onnx.save_model(matmul(), put(root, "no_such_accelerator", gpu % "magic"))


def make_ragged(root):
    """Requests of different lengths in one batch: Y is the sum of each, cut apart by the offsets the server makes."""
    node = helper.make_node
    ragged = model(
        [
            node("CumSum", ["X", "axis"], ["sums"]),
            node("Concat", ["zero", "sums"], ["from_zero"], axis=0),
            node("Cast", ["OFFSETS"], ["at"], to=T.INT64),
            node("Gather", ["from_zero", "at"], ["ends"]),
            node("Slice", ["ends", "one", "last"], ["upper"]),
            node("Slice", ["ends", "begin", "minus_one"], ["lower"]),
            node("Sub", ["upper", "lower"], ["flat"]),
            node("Unsqueeze", ["flat", "one"], ["Y"]),
        ],
        [value("X", T.FLOAT, ["T"]), value("OFFSETS", T.INT32, ["M"])],
        [value("Y", T.FLOAT, ["N", 1])],
        [
            numpy_helper.from_array(np.array(0, np.int64), "axis"),
            numpy_helper.from_array(np.array([0], np.float32), "zero"),
            numpy_helper.from_array(np.array([0], np.int64), "begin"),
            numpy_helper.from_array(np.array([1], np.int64), "one"),
            numpy_helper.from_array(np.array([-1], np.int64), "minus_one"),
            numpy_helper.from_array(np.array([2**62], np.int64), "last"),
        ],
    )
    config = """
        backend: "onnxruntime"
        max_batch_size: 8
        input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
        output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
        batch_input [ {
          kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO
          target_name: "OFFSETS" data_type: TYPE_INT32 source_input: "X"
        } ]
        dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 5000000 }
    """
    onnx.save_model(ragged, put(root, "ragged", config))


def check_ragged(url):
    import tritonclient.http as triton

    client = triton.InferenceServerClient(url, concurrency=3)
    arrays = [np.arange(1, length + 1, dtype=np.float32)[None] for length in (2, 5, 3)]
    calls = []
    for array in arrays:
        tensor = triton.InferInput("X", list(array.shape), "FP32")
        tensor.set_data_from_numpy(array)
        calls.append(client.async_infer("ragged", [tensor]))
    for array, call in zip(arrays, calls):
        assert call.get_result().as_numpy("Y").tolist() == [[array.sum()]]
    stats = client.get_inference_statistics("ragged")["model_stats"][0]
    assert [batch["batch_size"] for batch in stats["batch_stats"]] == [3], stats["batch_stats"]
    assert stats["execution_count"] == 1


def check(url):
    import tritonclient.http as triton

    client = triton.InferenceServerClient(url)

    def infer(name, array, datatype="FP32", binary=True):
        tensor = triton.InferInput("X", list(array.shape), datatype)
        tensor.set_data_from_numpy(array, binary_data=binary)
        return client.infer(name, [tensor]).as_numpy("Y")

    rows = np.random.default_rng(1).random((3, 4096), dtype=np.float32)
    for name in ("external_data", "other_name", "level_minus_1", "level_1", "level_2"):
        np.testing.assert_allclose(infer(name, rows), rows @ WEIGHTS, rtol=1e-4)
    sparse = np.array([[0, 1, 0], [2, 0, 3]], dtype=np.float32)
    np.testing.assert_array_equal(infer("dynamic_output", sparse), np.array(np.nonzero(sparse)))
    assert infer("dynamic_output", np.zeros((2, 2), np.float32)).shape == (2, 0)
    halves = np.array([[1.5, -2, 65504 / 2]], dtype=np.float16)
    np.testing.assert_array_equal(infer("half", halves, "FP16"), halves + halves)
    check_ragged(url)
    index = {entry["name"]: entry for entry in client.get_model_repository_index()}
    assert "OpenVINO" in index["no_openvino"]["reason"], index["no_openvino"]
    assert "unknown Execution Accelerator 'magic' is requested" in index["no_such_accelerator"]["reason"]
    print("all checks passed")


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2])
