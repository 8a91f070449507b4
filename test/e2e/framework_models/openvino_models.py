"""Models of OpenVINO, and checks that the server answers what OpenVINO itself computes. Driver of frameworks.test.ts;
see v2_client.run for its arguments."""
import os
import shutil
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from v2_client import at_once, close, refused, run, same, tensors_text, version_of

ADD_SUB = os.path.join(os.path.dirname(__file__), "..", "..", "..", "examples", "models", "add_sub", "1", "model.onnx")
WEIGHTS = np.random.default_rng(3).random((6, 3), np.float32)


def dense(shape, layout=None, dtype=np.float32):
    x = ops.parameter(shape, dtype, name="x")
    y = ops.softmax(ops.matmul(x, WEIGHTS.astype(dtype), False, False), 1)
    x.output(0).set_names({"x"})
    y.output(0).set_names({"y"})
    model = ov.Model([y], [x], "dense")
    if layout is not None:
        model.inputs[0].node.set_layout(ov.Layout(layout))
        model.outputs[0].node.set_layout(ov.Layout(layout))
    return model


def parameter(name, value):
    return 'parameters { key: "%s" value { string_value: "%s" } }\n' % (name, value)


def save(folder, name, model, config=None):
    ov.save_model(model, os.path.join(version_of(folder, name, config), "model.xml"), compress_to_fp16=False)


def make(folder):
    save(folder, "with_layout", dense([-1, 6], "NC"))
    save(folder, "without_layout", dense([-1, 6]))
    save(folder, "fixed", dense([2, 6]))
    tensors = tensors_text("input", ("x", "FP32", [6])) + tensors_text("output", ("y", "FP32", [3]))
    batching = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n"
    save(folder, "batches", dense([1, 6]), 'backend: "openvino"\n' + batching + tensors)
    settings = parameter("PERFORMANCE_HINT", "LATENCY") + parameter("INFERENCE_NUM_THREADS", "1")
    settings += parameter("COMPILATION_NUM_THREADS", "1") + parameter("NUM_STREAMS", "1")
    static = 'backend: "openvino"\nmax_batch_size: 4\n' + tensors + parameter("SKIP_OV_DYNAMIC_BATCHSIZE", "YES")
    save(folder, "static", dense([1, 6]), static + settings)
    save(folder, "padded", dense([1, 6]), static + parameter("ENABLE_BATCH_PADDING", "YES"))
    reshaped = tensors_text("input", ("x", "FP32", [5, 6])) + tensors_text("output", ("y", "FP32", [5, 3]))
    save(folder, "reshaped", dense([2, 6]), 'backend: "openvino"\n' + reshaped + parameter("RESHAPE_IO_LAYERS", "yes"))
    # The model itself has FP32.
    halves = tensors_text("input", ("x", "FP16", [6])) + tensors_text("output", ("y", "FP16", [3]))
    save(folder, "halves", dense([1, 6]), 'backend: "openvino"\nmax_batch_size: 2\n' + halves)
    version = version_of(folder, "from_onnx", 'backend: "openvino"\ndefault_model_filename: "model.onnx"\n')
    shutil.copy(ADD_SUB, version)
    save(folder, "wrong_hint", dense([1, 6]), 'backend: "openvino"\n' + parameter("PERFORMANCE_HINT", "FAST"))
    wrong = tensors_text("input", ("x", "FP32", [7])) + tensors_text("output", ("y", "FP32", [3]))
    save(folder, "wrong_dims", dense([1, 6]), 'backend: "openvino"\nmax_batch_size: 4\n' + wrong)
    wrong = tensors_text("input", ("z", "FP32", [1, 6])) + tensors_text("output", ("y", "FP32", [1, 3]))
    save(folder, "wrong_name", dense([1, 6]), 'backend: "openvino"\n' + wrong)
    with open(os.path.join(version_of(folder, "no_model"), "model.xml"), "w", encoding="utf-8") as file:
        file.write("<net>")


def direct(x):
    """What OpenVINO answers."""
    return ov.Core().compile_model(dense([-1, 6]), "CPU")([x])[0]


def rows(count):
    return np.random.default_rng(count).random((count, 6), np.float32)


def dims_of(tensors):
    return [(tensor["name"], tensor["data_type"], [int(dim) for dim in tensor["dims"]]) for tensor in tensors]


def check_a_layout_with_a_batch_without_config(client, _):
    client.load("with_layout")
    config = client.config("with_layout")
    assert config["max_batch_size"] == 4 and "dynamic_batching" in config, config
    # One free dimension frees all, as in Triton.
    assert dims_of(config["input"]) == [("x", "TYPE_FP32", [-1])], config
    close(client.infer("with_layout", {"x": rows(3)})["y"], direct(rows(3)))


def check_no_layout_means_no_batch(client, _):
    for name, dims in (("without_layout", [-1, -1]), ("fixed", [2, 6])):
        client.load(name)
        config = client.config(name)
        assert config["max_batch_size"] == 0 and dims_of(config["input"]) == [("x", "TYPE_FP32", dims)], config
        close(client.infer(name, {"x": rows(2)})["y"], direct(rows(2)))


def check_requests_that_wait_run_as_one_batch(client, _):
    client.load("batches")
    sent = [rows(1 + number % 2) for number in range(4)]
    calls = [lambda x=x: client.infer("batches", {"x": x}) for x in sent]
    for x, got in zip(sent, at_once(calls)):
        close(got["y"], direct(x))
    assert client.statistics("batches")["execution_count"] < 4, client.statistics("batches")


def check_a_fixed_batch_and_its_padding(client, _):
    client.load("static")
    close(client.infer("static", {"x": rows(4)})["y"], direct(rows(4)))
    text = "expected requests with batch size '4', got '3'..."
    refused(lambda: client.infer("static", {"x": rows(3)}), text, status=500)
    client.load("padded")
    close(client.infer("padded", {"x": rows(3)})["y"], direct(rows(3)))


def check_layers_reshaped_by_the_config(client, _):
    client.load("reshaped")
    close(client.infer("reshaped", {"x": rows(5)})["y"], direct(rows(5)))


def check_datatypes_of_the_config_are_converted(client, _):
    client.load("halves")
    got = client.infer("halves", {"x": rows(2).astype(np.float16)})["y"]
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, direct(rows(2)), rtol=1e-2)


def check_an_onnx_file(client, _):
    client.load("from_onnx")
    left, right = np.full((2, 4), 3, np.float32), np.full((2, 4), 2, np.float32)
    got = client.infer("from_onnx", {"INPUT0": left, "INPUT1": right})
    assert sorted(got) == ["OUTPUT0", "OUTPUT1"], got
    want = ov.Core().compile_model(ADD_SUB, "CPU")([left, right])
    for name, array in got.items():
        same(array, want[name])


def check_configs_that_do_not_fit(client, _):
    text = "expected the parameter 'PERFORMANCE_HINT' to be LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got fast"
    refused(lambda: client.load("wrong_hint"), text)
    text = "model 'wrong_dims', tensor 'x': the model expects 2 dimensions (shape [-1,6]) but the model configuration "
    refused(lambda: client.load("wrong_dims"), text + "specifies 2 dimensions")
    refused(lambda: client.load("wrong_name"), "unexpected inference input 'z', allowed inputs are: x")


def check_files_that_are_no_models(client, _):
    refused(lambda: client.load("no_model"), "failed to load model 'no_model': ")


if __name__ == "__main__":
    run(sys.modules[__name__], make)
