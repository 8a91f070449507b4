"""Trains the `digits` example: a small convolutional network on scikit-learn's 8x8 handwritten digits.

Plain numpy (im2col, Adam, fixed seed), about half a minute on one core. Writes the ONNX file, its
config.pbtxt and labels.txt, and sample images as PNG and as ready-made infer requests.

    python examples/make/digits.py
"""
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

EXAMPLES = Path(__file__).resolve().parent.parent
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
CHANNELS = (16, 32)
EPOCHS, BATCH, LEARNING_RATE, SEED = 40, 64, 2e-3, 7


def patches(x):
    """3x3 neighbourhoods with padding 1: (n, c, h, w) -> (n, h, w, c * 9), in ONNX's weight order."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def unpatches(grad, shape):
    """The transpose of `patches`: adds each neighbourhood's gradient back where it came from."""
    n, c, h, w = shape
    grad = grad.reshape(n, h, w, c, 3, 3)
    out = np.zeros((n, c, h + 2, w + 2), grad.dtype)
    for dy in range(3):
        for dx in range(3):
            out[:, :, dy : dy + h, dx : dx + w] += grad[:, :, :, :, dy, dx].transpose(0, 3, 1, 2)
    return out[:, :, 1:-1, 1:-1]


def pool(x):
    """2x2 maximum, and the mask that sends the gradient back to where the maximum was."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    top = blocks.max(axis=(3, 5), keepdims=True)
    return top[:, :, :, 0, :, 0], blocks == top


def unpool(grad, mask):
    n, c, h, _, w, _ = mask.shape
    return (mask * grad[:, :, :, None, :, None]).reshape(n, c, h * 2, w * 2)


def forward(p, x):
    keep = {"x": x}
    for i in (1, 2):
        cols = patches(x)
        z = (cols @ p[f"w{i}"].T + p[f"b{i}"]).transpose(0, 3, 1, 2)
        a = np.maximum(z, 0)
        y, mask = pool(a)
        keep[i] = (x.shape, cols, z, mask)
        x = y
    flat = x.reshape(len(x), -1)
    keep["flat"], keep["shape"] = flat, x.shape
    logits = flat @ p["w3"].T + p["b3"]
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), keep


def backward(p, keep, probabilities, labels):
    grads = {}
    d = probabilities.copy()
    d[np.arange(len(labels)), labels] -= 1
    d /= len(labels)
    grads["w3"], grads["b3"] = d.T @ keep["flat"], d.sum(axis=0)
    d = (d @ p["w3"]).reshape(keep["shape"])
    for i in (2, 1):
        shape, cols, z, mask = keep[i]
        d = unpool(d, mask) * (z > 0)
        d = d.transpose(0, 2, 3, 1)
        grads[f"w{i}"] = d.reshape(-1, d.shape[-1]).T @ cols.reshape(-1, cols.shape[-1])
        grads[f"b{i}"] = d.sum(axis=(0, 1, 2))
        d = unpatches(d @ p[f"w{i}"], shape)
    return grads


def train(x, y, rng):
    sizes = {"w1": (CHANNELS[0], 9), "w2": (CHANNELS[1], CHANNELS[0] * 9), "w3": (10, CHANNELS[1] * 4)}
    p = {k: (rng.standard_normal(s) * np.sqrt(2 / s[1])).astype(np.float32) for k, s in sizes.items()}
    p |= {k.replace("w", "b"): np.zeros(s[0], np.float32) for k, s in sizes.items()}
    m, v, step = {k: 0 for k in p}, {k: 0 for k in p}, 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(x))
        rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for start in range(0, len(x), BATCH):
            at = order[start : start + BATCH]
            probabilities, keep = forward(p, x[at])
            grads = backward(p, keep, probabilities, y[at])
            step += 1
            for k, g in grads.items():
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g * g
                p[k] -= (rate * (m[k] / (1 - 0.9**step)) / (np.sqrt(v[k] / (1 - 0.999**step)) + 1e-8)).astype(np.float32)
    return p


def to_onnx(p):
    weights = {
        "conv1_w": p["w1"].reshape(CHANNELS[0], 1, 3, 3), "conv1_b": p["b1"],
        "conv2_w": p["w2"].reshape(CHANNELS[1], CHANNELS[0], 3, 3), "conv2_b": p["b2"],
        "dense_w": p["w3"], "dense_b": p["b3"],
    }
    node = helper.make_node
    nodes = [
        node("Conv", ["IMAGE", "conv1_w", "conv1_b"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "conv2_w", "conv2_b"], ["c2"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], ["r2"]),
        node("MaxPool", ["r2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p2"], ["flat"]),
        node("Gemm", ["flat", "dense_w", "dense_b"], ["logits"], transB=1),
        node("Softmax", ["logits"], ["SCORES"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("IMAGE", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("SCORES", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(w, np.float32), k) for k, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def png(image):
    """An 8-bit grayscale PNG of a (rows, columns) array of 0..255."""
    rows = b"".join(b"\0" + bytes(row) for row in image.astype(np.uint8))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def infer_request(image):
    pixels = [int(v) / 255 for v in image.reshape(-1)]
    return {
        "inputs": [{"name": "IMAGE", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [round(v, 4) for v in pixels]}],
        "outputs": [{"name": "SCORES", "parameters": {"classification": 3}}],
    }


CONFIG = """# Looks at an 8x8 picture of a handwritten digit and says which one it is.
# Single pictures that arrive together are run as one batch of up to 32.
backend: "onnxruntime"
max_batch_size: 32
input [ { name: "IMAGE" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 1, 8, 8 ] } ]
output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" } ]
dynamic_batching { max_queue_delay_microseconds: 500 }
"""


def main():
    data = load_digits()
    # Pictures go through 0..255 first, so that a PNG read back by a client is what was trained on.
    pixels = np.round(data.images / 16 * 255)
    x, y = (pixels / 255).astype(np.float32)[:, None], data.target
    train_x, test_x, train_y, test_y, _, test_pixels = train_test_split(
        x, y, pixels, test_size=0.2, random_state=SEED, stratify=y)
    p = train(train_x, train_y, np.random.default_rng(SEED))
    scores, _ = forward(p, test_x)
    correct = scores.argmax(axis=1) == test_y
    print(f"test accuracy {correct.mean():.4f} on {len(test_y)} pictures")
    assert correct.mean() > 0.97

    folder = EXAMPLES / "models" / "digits"
    (folder / "1").mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(p), folder / "1" / "model.onnx")
    (folder / "config.pbtxt").write_text(CONFIG)
    (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")

    images = EXAMPLES / "images"
    images.mkdir(exist_ok=True)
    for digit, name in enumerate(LABELS):
        # The first test picture of each digit that is neither misread nor a foregone conclusion.
        at = next(i for i in np.flatnonzero(correct & (test_y == digit)) if scores[i].max() < 0.9999)
        (images / f"{name}.png").write_bytes(png(test_pixels[at]))
        (images / f"{name}.json").write_text(json.dumps(infer_request(test_pixels[at])) + "\n")


if __name__ == "__main__":
    main()
