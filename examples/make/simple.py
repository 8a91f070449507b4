"""Writes the example models that need no training: add_sub, add_sub_int32, scaler and tokens.

    python examples/make/simple.py
"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS = Path(__file__).resolve().parent.parent / "models"
FLOAT, INT32, INT64, STRING = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.STRING

ADD_SUB_INT32_CONFIG = """# Triton's `simple` example: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1.
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
]
output [
  { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] }
]
"""

SCALER_CONFIG = """# Three versions side by side: version 1 multiplies by 1, version 2 by 10, version 3 by 100.
# A request that names no version gets the highest.
backend: "onnxruntime"
max_batch_size: 16
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
version_policy { all { } }
"""

TOKENS_CONFIG = """# Text in, text out: splits each sentence at white space and counts the words.
# TEXT is one sentence per row; WORDS has as many columns as the longest sentence, padded with "".
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } } ]
output [
  { name: "WORDS" data_type: TYPE_STRING dims: [ -1 ] },
  { name: "COUNT" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } }
]
"""


def save(name, nodes, inputs, outputs, weights=(), config=None, version=1, opset=13):
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs],
        [numpy_helper.from_array(w, n) for n, w in weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model)
    folder = MODELS / name
    (folder / str(version)).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / str(version) / "model.onnx")
    if config is not None:
        (folder / "config.pbtxt").write_text(config)


def add_sub(name, kind, shape, config):
    nodes = [helper.make_node("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]),
             helper.make_node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
    save(name, nodes, [(f"INPUT{i}", kind, shape) for i in (0, 1)], [(f"OUTPUT{i}", kind, shape) for i in (0, 1)],
         config=config)


def main():
    # No config.pbtxt on purpose: names, types and shapes are completed from the ONNX file.
    add_sub("add_sub", FLOAT, ["batch", 4], None)
    add_sub("add_sub_int32", INT32, ["batch", 16], ADD_SUB_INT32_CONFIG)
    for version, factor in ((1, 1), (2, 10), (3, 100)):
        save("scaler", [helper.make_node("Mul", ["X", "factor"], ["Y"])],
             [("X", FLOAT, ["batch", "n"])], [("Y", FLOAT, ["batch", "n"])],
             [("factor", np.array(factor, np.float32))], SCALER_CONFIG, version)
    save("tokens", [helper.make_node("StringSplit", ["TEXT"], ["WORDS", "COUNT"])],
         [("TEXT", STRING, ["batch"])], [("WORDS", STRING, ["batch", "words"]), ("COUNT", INT64, ["batch"])],
         config=TOKENS_CONFIG, opset=20)


if __name__ == "__main__":
    main()
