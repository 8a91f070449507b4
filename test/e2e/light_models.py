"""Driver of light-models.test.ts: the nine small networks inside the PyPI package onnx.

    light_models.py prepare DIR     writes a model repository without any config.pbtxt
    light_models.py check URL       loads each network, infers, compares with the expected tensors

Inputs are made as onnx's own backend tests make them; the expected outputs lie beside the networks.
"""
import glob
import os
import shutil
import sys

import numpy as np
import onnx
import onnx.backend.test
import tritonclient.http as triton
from onnx import numpy_helper

LIGHT = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "light")
RTOL, ATOL = 1e-3, 1e-7  # as in onnx's backend tests


def networks():
    return sorted(glob.glob(os.path.join(LIGHT, "light_*.onnx")))


def name_of(path):
    return os.path.basename(path)[: -len(".onnx")]


def prepare(folder):
    for path in networks():
        version = os.path.join(folder, name_of(path), "1")
        os.makedirs(version)
        shutil.copy(path, os.path.join(version, "model.onnx"))


def inputs_of(model):
    """Weights are graph inputs too in these old files; the real inputs are those without an initializer."""
    weights = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in weights:
            shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            yield value.name, (np.arange(count).reshape(shape) / count).astype(np.float32)


def expected_of(path, index):
    with open(f"{path[: -len('.onnx')]}_output_{index}.pb", "rb") as file:
        return numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))


def check_one(client, path):
    name, model = name_of(path), onnx.load(path)
    client.load_model(name)
    assert client.is_model_ready(name), f"{name} is not ready after its load"
    metadata = client.get_model_metadata(name)
    assert metadata["platform"] == "onnxruntime_onnx", metadata
    feeds = list(inputs_of(model))
    assert [i["name"] for i in metadata["inputs"]] == [n for n, _ in feeds], metadata
    for binary in (True, False):
        inputs = []
        for input_name, value in feeds:
            tensor = triton.InferInput(input_name, list(value.shape), "FP32")
            tensor.set_data_from_numpy(value, binary_data=binary)
            inputs.append(tensor)
        outputs = [triton.InferRequestedOutput(o.name, binary_data=binary) for o in model.graph.output]
        result = client.infer(name, inputs, outputs=outputs)
        for index, output in enumerate(model.graph.output):
            got, want = result.as_numpy(output.name), expected_of(path, index)
            assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL)
    client.unload_model(name)
    print(f"ok {name}")


def check(url):
    client = triton.InferenceServerClient(url, connection_timeout=120, network_timeout=120)
    paths = networks()
    assert len(paths) == 9, paths
    for path in paths:
        check_one(client, path)
    print("all equal")


if __name__ == "__main__":
    {"prepare": prepare, "check": check}[sys.argv[1]](sys.argv[2])
