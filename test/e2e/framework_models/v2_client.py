"""What the programs of this folder share: a v2 client in plain Python, so that they need nothing but numpy and their
framework; writing a model repository; and running checks as ../checks.py does."""
import json
import os
import struct
import sys
import threading
import traceback
import urllib.error
import urllib.request

import numpy as np

NAMES = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "BYTES",
    **{"%sint%d" % (sign, bits): "%sINT%d" % (sign.upper(), bits) for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__("%d %s" % (status, message))
        self.status, self.message = status, message


class Client:
    def __init__(self, address):
        self._address = address

    def call(self, path, body=None, headers=None):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request("http://%s/v2%s" % (self._address, path), data, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=240) as answer:
                return answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            raise Failed(error.code, json.loads(error.read())["error"]) from None

    def json(self, path, body=None):
        return json.loads(self.call(path, body)[1] or b"{}")

    def load(self, model):
        self.call("/repository/models/%s/load" % model, {})

    def unload(self, model):
        self.call("/repository/models/%s/unload" % model, {})

    def config(self, model):
        return self.json("/models/%s/config" % model)

    def statistics(self, model):
        return self.json("/models/%s/stats" % model)["model_stats"][0]

    def infer(self, model, inputs):
        """Arrays in, arrays out, all in binary. A pair (datatype, array) sends an array under another datatype."""
        tensors, pieces = [], []
        for name, value in inputs.items():
            datatype, array = value if isinstance(value, tuple) else (NAMES[value.dtype.name], value)
            data = _text_bytes(array) if datatype == "BYTES" else np.ascontiguousarray(array).tobytes()
            pieces.append(data)
            size = {"binary_data_size": len(data)}
            tensors.append({"name": name, "datatype": datatype, "shape": array.shape, "parameters": size})
        head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": True}}).encode()
        length = {"Inference-Header-Content-Length": str(len(head))}
        headers, body = self.call("/models/%s/infer" % model, head + b"".join(pieces), length)
        return _outputs_of(body, int(headers["Inference-Header-Content-Length"]))


def _text_bytes(array):
    return b"".join(struct.pack("<I", len(item)) + item for item in array.ravel().tolist())


def _outputs_of(body, at):
    outputs = {}
    for tensor in json.loads(body[:at])["outputs"]:
        end = at + tensor["parameters"]["binary_data_size"]
        data, at = body[at:end], end
        if tensor["datatype"] == "BYTES":
            texts = []
            while data:
                length = struct.unpack_from("<I", data)[0]
                texts.append(data[4 : 4 + length])
                data = data[4 + length :]
            array = np.array(texts, np.object_)
        else:
            # BF16 comes as its bits.
            array = np.frombuffer(data, np.dtype(DTYPES.get(tensor["datatype"], "uint16")))
        outputs[tensor["name"]] = array.reshape(tensor["shape"])
    return outputs


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def close(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def refused(call, *texts, status=None):
    """The error of a call that must fail with these words."""
    try:
        call()
    except Failed as error:
        for text in texts:
            assert text in error.message, "expected %r in %r" % (text, error.message)
        assert status in (None, error.status), error
        return error
    raise AssertionError("no error; expected one with %s" % (texts,))


def at_once(calls):
    """Makes all calls at the same time and returns their results in order."""
    results = [None] * len(calls)

    def make(position):
        results[position] = calls[position]()

    threads = [threading.Thread(target=make, args=(position,)) for position in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def version_of(folder, model, config=None):
    """Makes the directories of a model and returns that of version 1."""
    version = os.path.join(folder, model, "1")
    os.makedirs(version)
    if config is not None:
        with open(os.path.join(folder, model, "config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(config)
    return version


def tensors_text(kind, *tensors):
    """The text of `input` or `output` for (name, type, dims)."""
    row = '{ name: "%s" data_type: TYPE_%s dims: %s }'
    rows = [row % (name, data_type, list(dims)) for name, data_type, dims in tensors]
    return "%s [ %s ]\n" % (kind, ", ".join(rows))


def run(module, make):
    """`make DIR` writes the models, `check ADDRESS DIR` calls every check_ function of the module."""
    if sys.argv[1] == "make":
        make(sys.argv[2])
        return
    client, failures = Client(sys.argv[2]), 0
    for name, check in list(vars(module).items()):
        if not name.startswith("check_"):
            continue
        try:
            check(client, sys.argv[3])
            print("ok %s" % name)
        except Exception:
            failures += 1
            print("not ok %s\n%s" % (name, traceback.format_exc()))
    sys.exit(1 if failures else 0)
