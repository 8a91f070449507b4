"""Makes the models of the bench: make-models.py FOLDER writes FOLDER/nereid, FOLDER/triton and FOLDER/python.

The first two repositories hold the same ONNX files and the same batching settings. In nereid/ they are served by the
onnxruntime backend; in triton/ by the Python backend with triton-model.py. The weights are random with a fixed seed. The third holds models in Python, which both sides serve as they are.
"""
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
HERE = os.path.dirname(os.path.abspath(__file__))


class Graph:
    """Collects nodes and weights; every method returns the name of the tensor it has made."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.weights = []

    def weight(self, values):
        name = "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values, dtype=np.float32), name))
        return name

    def node(self, kind, inputs, output=None, **attributes):
        output = output or "t%d" % len(self.nodes)
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def normal(self, shape, fan_in):
        # He's rule keeps the activations of a deep ReLU network at one scale, far from denormals and infinities.
        return self.random.standard_normal(shape) * np.sqrt(2.0 / fan_in)

    def dense(self, source, inputs, outputs, output=None):
        weight = self.weight(self.normal((inputs, outputs), inputs))
        return self.node("Gemm", [source, weight, self.weight(np.zeros(outputs))], output)

    def conv_norm(self, source, channels, size, stride, gamma=1.0):
        """source is (tensor, channels); a convolution and its batch normalisation, as training leaves them."""
        tensor, inputs = source
        weight = self.weight(self.normal((channels, inputs, size, size), inputs * size * size))
        pad = size // 2
        tensor = self.node("Conv", [tensor, weight], kernel_shape=[size, size], strides=[stride, stride],
                           pads=[pad] * 4)
        ones, zeros = np.ones(channels), np.zeros(channels)
        scale = [self.weight(ones * gamma), self.weight(zeros), self.weight(zeros), self.weight(ones)]
        return self.node("BatchNormalization", [tensor, *scale], epsilon=1e-5), channels

    def relu(self, source):
        return self.node("Relu", [source[0]]), source[1]

    def model(self, name, input_shape, output_shape):
        graph = helper.make_graph(
            self.nodes, name,
            [helper.make_tensor_value_info("INPUT", TensorProto.FLOAT, ["batch", *input_shape])],
            [helper.make_tensor_value_info("OUTPUT", TensorProto.FLOAT, ["batch", *output_shape])],
            self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model


def make_mlp():
    graph = Graph(seed=1)
    hidden = graph.node("Relu", [graph.dense("INPUT", 64, 64)])
    graph.dense(hidden, 64, 10, output="OUTPUT")
    return graph.model("mlp", [64], [10])


def bottleneck(graph, source, width, stride):
    """1x1, 3x3, 1x1 and the way around them; version 1 of ResNet puts the stride into the first one."""
    deep = graph.relu(graph.conv_norm(source, width, 1, stride))
    deep = graph.relu(graph.conv_norm(deep, width, 3, 1))
    # A small last scale keeps the sum of sixteen blocks bounded without trained statistics.
    deep = graph.conv_norm(deep, 4 * width, 1, 1, gamma=0.2)
    if source[1] != 4 * width:
        source = graph.conv_norm(source, 4 * width, 1, stride)
    return graph.relu((graph.node("Add", [deep[0], source[0]]), 4 * width))


def make_convnet():
    """ResNet-50 v1: 25.6 million parameters, about 4 GFLOP (multiply-adds) for a picture of 224 by 224."""
    graph = Graph(seed=2)
    tensor = graph.relu(graph.conv_norm(("INPUT", 3), 64, 7, 2))
    tensor = (graph.node("MaxPool", [tensor[0]], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64)
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            tensor = bottleneck(graph, tensor, 64 << stage, 2 if stage > 0 and block == 0 else 1)
    pooled = graph.node("Flatten", [graph.node("GlobalAveragePool", [tensor[0]])])
    graph.dense(pooled, 2048, 1000, output="OUTPUT")
    return graph.model("convnet", [3, 224, 224], [1000])


def config(backend, batch, input_shape, output_shape):
    return """backend: "%s"
max_batch_size: %d
dynamic_batching { }
instance_group [ { count: 1 kind: KIND_CPU } ]
input [ { name: "INPUT" data_type: TYPE_FP32 dims: %s } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: %s } ]
""" % (backend, batch, input_shape, output_shape)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def save(home, name, model, batch, input_shape, output_shape):
    shapes = (batch, input_shape, output_shape)
    write(os.path.join(home, "nereid", name, "config.pbtxt"), config("onnxruntime", *shapes))
    write(os.path.join(home, "triton", name, "config.pbtxt"), config("python", *shapes))
    original = os.path.join(home, "nereid", name, "1", "model.onnx")
    os.makedirs(os.path.dirname(original))
    onnx.save(model, original)
    version = os.path.join(home, "triton", name, "1")
    os.makedirs(version)
    os.symlink(os.path.relpath(original, version), os.path.join(version, "model.onnx"))
    shutil.copy(os.path.join(HERE, "triton-model.py"), os.path.join(version, "model.py"))
    parameters = sum(int(np.prod(weight.dims)) for weight in model.graph.initializer)
    print("%s: %d parameters" % (name, parameters), file=sys.stderr)


def save_python(home, name, values, is_batched):
    """`values` is the number of FP32 elements of a request. Without batches the scheduler is Triton's default one."""
    suffix = "" if is_batched else "-single"
    folder = os.path.join(home, "python", "%s-%s%s" % (name, values, suffix))
    text = config("python", 32, [values], [values])
    if not is_batched:
        text = text.replace("dynamic_batching { }\n", "")
    copy_python(folder, text, name)


SEQUENCES = """sequence_batching {
  %s
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""

CHAIN_STEP = """  { model_name: "step" model_version: -1 input_map { key: "INPUT" value: "%s" } output_map { key: "OUTPUT" value: "%s" } }"""

ROUTER = """platform: "router"
router { target [ { model: "step" weight: 90 name: "most" }, { model: "step" weight: 10 name: "few" } ] }
"""


def save_schedulers(home):
    """Sequences, pipelines, the cache: the same repository for both sides; the router is in ours alone."""
    for side in ("nereid", "triton"):
        folder = os.path.join(home, "schedulers-" + side)
        for strategy, text in (("direct", "direct { }"), ("oldest", "oldest { max_candidate_sequences: 512 }")):
            model = config("python", 512, [1], [1]).replace("dynamic_batching { }\n", SEQUENCES % text)
            copy_python(os.path.join(folder, "accumulate-" + strategy), model, "accumulate")
        step = config("python", 32, [16], [16])
        copy_python(os.path.join(folder, "step"), step, "identity")
        copy_python(os.path.join(folder, "cached"), step + "response_cache { enable: true }\n", "identity")
        for length in (1, 2, 4):
            names = ["INPUT"] + ["t%d" % index for index in range(1, length)] + ["OUTPUT"]
            steps = ",\n".join(CHAIN_STEP % (names[index], names[index + 1]) for index in range(length))
            text = config("", 32, [16], [16]).split("\n", 1)[1].replace("dynamic_batching { }\n", "")
            text = "\n".join(line for line in text.split("\n") if not line.startswith("instance_group"))
            text = 'platform: "ensemble"\n%sensemble_scheduling { step [\n%s\n] }\n' % (text, steps)
            write(os.path.join(folder, "chain-%d" % length, "config.pbtxt"), text)
            os.makedirs(os.path.join(folder, "chain-%d" % length, "1"))
    write(os.path.join(home, "schedulers-nereid", "routed", "config.pbtxt"), ROUTER)
    os.makedirs(os.path.join(home, "schedulers-nereid", "routed", "1"))


def copy_python(folder, text, name):
    write(os.path.join(folder, "config.pbtxt"), text)
    os.makedirs(os.path.join(folder, "1"))
    shutil.copy(os.path.join(HERE, "python-models", name + ".py"), os.path.join(folder, "1", "model.py"))


if __name__ == "__main__":
    save_schedulers(sys.argv[1])
    for values in (16, 150000):
        for is_batched in (True, False):
            save_python(sys.argv[1], "identity", values, is_batched)
            save_python(sys.argv[1], "normalize", values, is_batched)
    save(sys.argv[1], "mlp", make_mlp(), 32, [64], [10])
    save(sys.argv[1], "convnet", make_convnet(), 8, [3, 224, 224], [1000])
