"""Classifies pictures of digits through tritonclient.

    pip install "tritonclient[http]"
    python examples/clients/classify.py examples/images/seven.png
"""
import os
import struct
import sys
import zlib

import numpy as np
import tritonclient.http as triton


def read_png(path):
    """The pixels (0..1) of an 8-bit grayscale PNG without filters, as the example images are written."""
    data, at, packed = open(path, "rb").read(), 8, b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, width + 1)
    return rows[:, 1:].astype(np.float32) / 255


def main(paths):
    client = triton.InferenceServerClient(os.environ.get("NEREID_URL", "localhost:8000"))
    images = np.stack([read_png(path)[None] for path in paths])  # (pictures, 1, 8, 8)
    image = triton.InferInput("IMAGE", list(images.shape), "FP32")
    image.set_data_from_numpy(images)
    scores = triton.InferRequestedOutput("SCORES", class_count=3)
    result = client.infer("digits", [image], outputs=[scores])
    for path, top in zip(paths, result.as_numpy("SCORES")):
        print(path)
        for entry in top:  # "score:index:label"
            score, _, label = entry.decode().split(":")
            print(f"  {label:6} {float(score):.4f}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["examples/images/seven.png"])
