"""Models of PyTorch in every form that is served, and checks that the server answers what torch itself computes.
Driver of frameworks.test.ts; see v2_client.run for its arguments."""
import os
import sys
from typing import Dict, List

import numpy as np
import torch
from v2_client import at_once, close, refused, run, same, tensors_text, version_of

CLASS_FILE = """import torch


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.line(x)
"""


class AddSub(torch.nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor):
        return left + right, left - right


class ByName(torch.nn.Module):
    def forward(self, tensors: Dict[str, torch.Tensor]):
        return {"total": tensors["a"] + 2 * tensors["b"], "first": tensors["a"]}


class Texts(torch.nn.Module):
    def forward(self, words: List[str]):
        out: List[str] = []
        for word in words:
            out.append(word.upper() + "!")
        return out


class Tree(torch.nn.Module):
    def forward(self, pair: Dict[str, torch.Tensor], scale: torch.Tensor):
        return {"sum": (pair["a"] + pair["b"]) * scale, "both": (pair["a"], pair["b"])}


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x + x


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5)
        )
        self.head = torch.nn.Linear(8, 5)

    def forward(self, image: torch.Tensor):
        return self.head(self.body(image).mean((2, 3)))


def parameter(name, value):
    return 'parameters { key: "%s" value { string_value: "%s" } }\n' % (name, value)


def save_script(folder, name, module, config):
    torch.jit.script(module.eval()).save(os.path.join(version_of(folder, name, config), "model.pt"))


def make(folder):
    torch.manual_seed(7)
    pair = tensors_text("input", ("left", "FP32", [2]), ("right", "FP32", [2]))
    results = tensors_text("output", ("OUTPUT__0", "FP32", [2]), ("OUTPUT__1", "FP32", [2]))
    batching = "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 200000 }\n"
    save_script(folder, "by_argument", AddSub(), 'backend: "pytorch"\n' + batching + pair + results)
    swapped = tensors_text("input", ("B__1", "INT32", [-1]), ("A__0", "INT32", [-1]))
    swapped += tensors_text("output", ("DIFF__1", "INT32", [-1]), ("SUM__0", "INT32", [-1]))
    save_script(folder, "by_number", AddSub(), 'platform: "pytorch_libtorch"\n' + swapped)
    in_order = tensors_text("input", ("one", "INT64", [1]), ("two", "INT64", [1]))
    in_order += tensors_text("output", ("plus", "INT64", [1]), ("minus", "INT64", [1]))
    save_script(folder, "by_order", AddSub(), 'backend: "pytorch"\n' + in_order)
    keys = tensors_text("input", ("a", "FP64", [3]), ("b", "FP64", [3]))
    keys += tensors_text("output", ("total", "FP64", [3]), ("first", "FP64", [3]))
    save_script(folder, "by_key", ByName(), 'backend: "pytorch"\n' + keys)
    words = tensors_text("input", ("words", "STRING", [-1])) + tensors_text("output", ("OUTPUT__0", "STRING", [-1]))
    save_script(folder, "texts", Texts(), 'backend: "pytorch"\n' + words)
    for kind in ("FP16", "BF16", "BOOL", "UINT8", "INT8", "INT16"):
        one = tensors_text("input", ("x", kind, [-1])) + tensors_text("output", ("OUTPUT__0", kind, [-1]))
        save_script(folder, "twice_%s" % kind.lower(), Twice(), 'backend: "pytorch"\n' + one)
    image = tensors_text("input", ("image", "FP32", [3, 8, 8])) + tensors_text("output", ("scores", "FP32", [5]))
    settings = parameter("INFERENCE_MODE", "false") + parameter("DISABLE_OPTIMIZED_EXECUTION", "true")
    settings += parameter("INTRA_OP_THREAD_COUNT", "1") + parameter("INTER_OP_THREAD_COUNT", "1")
    settings += parameter("ENABLE_JIT_EXECUTOR", "false") + parameter("ENABLE_JIT_PROFILING", "false")
    settings += parameter("DISABLE_CUDNN", "true") + parameter("ENABLE_CACHE_CLEANING", "true")
    save_script(folder, "network", Network(), 'backend: "pytorch"\nmax_batch_size: 4\n' + image)
    torch.manual_seed(7)
    save_script(folder, "settings", Network(), 'backend: "pytorch"\nmax_batch_size: 4\n' + image + settings)
    make_programs(folder)
    make_wrong(folder)
    make_class(folder)


def make_programs(folder):
    # Each its own: torch.export takes one tensor in three places for one input.
    a, b, scale = (torch.ones(3, 4) for _ in range(3))
    batch = torch.export.Dim("batch", min=1, max=64)
    tree = torch.export.export(
        Tree(),
        ({"a": a, "b": b},),
        {"scale": scale},
        dynamic_shapes={"pair": {"a": {0: batch}, "b": {0: batch}}, "scale": {0: batch}},
    )
    inputs = tensors_text("input", *((name, "FP32", [4]) for name in ("ARGS[0][b]", "KWARGS[scale]", "ARGS[0][a]")))
    outputs = tensors_text("output", ("RESULT[both][1]", "FP32", [4]), ("RESULT[sum]", "FP32", [4]))
    config = 'platform: "torch_aoti"\nmax_batch_size: 16\n' + inputs + outputs
    torch.export.save(tree, os.path.join(version_of(folder, "program", config), "model.pt2"))
    numbers = tensors_text("input", *(("INPUT__%d" % index, "FP32", [3, 4]) for index in range(3)))
    outputs = tensors_text("output", ("OUTPUT__2", "FP32", [3, 4]), ("OUTPUT__0", "FP32", [3, 4]))
    # No platform: the file name tells.
    path = os.path.join(version_of(folder, "program_by_number", numbers + outputs), "model.pt2")
    torch.export.save(torch.export.export(Tree(), ({"a": a, "b": b},), {"scale": scale}), path)


def other(data_type, number):
    output = tensors_text("output", ("OUTPUT__%d" % number, data_type, [-1]))
    return 'backend: "pytorch"\n' + tensors_text("input", ("x", "FP32", [-1])) + output


def make_wrong(folder):
    with open(os.path.join(version_of(folder, "no_model", other("FP32", 0)), "model.pt"), "wb") as file:
        file.write(b"this is not a model")
    version_of(folder, "no_file", other("FP32", 0))
    save_script(folder, "wrong_type", Twice(), other("FP64", 0))
    save_script(folder, "wrong_number", Twice(), other("FP32", 3))
    save_script(folder, "wrong_count", AddSub(), other("FP32", 0))
    save_script(folder, "wrong_shapes", Network(), other("FP32", 0))


def make_class(folder):
    line = tensors_text("input", ("x", "FP32", [4])) + tensors_text("output", ("y", "FP32", [2]))
    line = 'backend: "pytorch"\nruntime: "model.py"\nmax_batch_size: 4\n' + line
    # torch.compile would take most of a minute here.
    line += parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{\\"disable\\": true}')
    version = version_of(folder, "class", line)
    with open(os.path.join(version, "model.py"), "w", encoding="utf-8") as file:
        file.write(CLASS_FILE)
    weights = {"line.weight": torch.arange(8.0).reshape(2, 4), "line.bias": torch.ones(2)}
    torch.save(weights, os.path.join(version, "model.pt"))
    version = version_of(folder, "broken_class", line)
    with open(os.path.join(version, "model.py"), "w", encoding="utf-8") as file:
        file.write(CLASS_FILE.replace("torch.nn.Linear(4, 2)", "torch.nn.Nothing()"))


def direct(folder, name, *inputs):
    """What torch answers."""
    module = torch.jit.load(os.path.join(folder, name, "1", "model.pt"))
    with torch.no_grad():
        return module(*(torch.from_numpy(array) for array in inputs))


def check_arguments_of_forward(client, folder):
    client.load("by_argument")
    left, right = np.array([[1, 2]], np.float32), np.array([[10, 20]], np.float32)
    got = client.infer("by_argument", {"right": right, "left": left})
    total, difference = direct(folder, "by_argument", left, right)
    same(got["OUTPUT__0"], total.numpy())
    same(got["OUTPUT__1"], difference.numpy())


def check_requests_that_wait_run_as_one_batch(client, _):
    client.load("by_argument")
    before = client.statistics("by_argument")

    def call(number):
        value = np.full((1 + number % 2, 2), number, np.float32)
        return lambda: client.infer("by_argument", {"left": value, "right": value})

    for number, got in enumerate(at_once([call(number) for number in range(5)])):
        same(got["OUTPUT__0"], np.full((1 + number % 2, 2), 2 * number, np.float32))
    after = client.statistics("by_argument")
    assert after["inference_count"] - before["inference_count"] == 7, after
    assert after["execution_count"] - before["execution_count"] < 5, after


def check_numbered_names(client, _):
    client.load("by_number")
    got = client.infer("by_number", {"A__0": np.array([9, 9], np.int32), "B__1": np.array([1, 2], np.int32)})
    same(got["SUM__0"], np.array([10, 11], np.int32))
    same(got["DIFF__1"], np.array([8, 7], np.int32))


def check_names_that_mean_nothing_go_by_order(client, _):
    client.load("by_order")
    got = client.infer("by_order", {"two": np.array([1], np.int64), "one": np.array([5], np.int64)})
    same(got["minus"], np.array([4], np.int64))


def check_dictionaries(client, folder):
    client.load("by_key")
    a, b = np.arange(3.0), np.ones(3)
    got = client.infer("by_key", {"a": a, "b": b})
    same(got["total"], a + 2 * b)
    same(got["first"], a)


def check_lists_of_texts(client, _):
    client.load("texts")
    words = np.array(["grün".encode(), b"", b"blue"], np.object_)
    want = np.array(["GRüN!".encode(), b"!", b"BLUE!"], np.object_)
    same(client.infer("texts", {"words": words})["OUTPUT__0"], want)


def check_datatypes(client, _):
    values = {"uint8": [0, 100], "int8": [-7, 60], "int16": [-3000, 9], "float16": [1.5, -2.25], "bool": [True, False]}
    for dtype, items in values.items():
        name = "twice_%s" % dtype.replace("float", "fp")
        client.load(name)
        array = np.array(items, dtype)
        same(client.infer(name, {"x": array})["OUTPUT__0"], array + array)
    client.load("twice_bf16")
    bits = torch.tensor([1.5, -3.0], dtype=torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    got = client.infer("twice_bf16", {"x": ("BF16", bits)})["OUTPUT__0"]
    assert torch.from_numpy(got.copy().view(np.int16)).view(torch.bfloat16).tolist() == [3.0, -6.0], got


def check_a_network_in_evaluation_mode_with_and_without_settings(client, folder):
    image = np.random.default_rng(1).random((3, 3, 8, 8), np.float32)
    for name in ("network", "settings"):
        client.load(name)
        close(client.infer(name, {"image": image})["scores"], direct(folder, name, image).numpy())


def check_a_program_with_trees(client, _):
    client.load("program")
    a, b, scale = (np.full((5, 4), value, np.float32) for value in (1, 2, 10))
    got = client.infer("program", {"ARGS[0][a]": a, "ARGS[0][b]": b, "KWARGS[scale]": scale})
    same(got["RESULT[sum]"], (a + b) * scale)
    same(got["RESULT[both][1]"], b)


def check_a_program_by_number(client, _):
    client.load("program_by_number")
    assert client.config("program_by_number")["platform"] == "torch_aoti"
    a, b, scale = (np.full((3, 4), value, np.float32) for value in (1, 2, 10))
    got = client.infer("program_by_number", {"INPUT__0": a, "INPUT__1": b, "INPUT__2": scale})
    same(got["OUTPUT__0"], (a + b) * scale)
    same(got["OUTPUT__2"], b)


def check_a_class_with_weights(client, _):
    client.load("class")
    x = np.array([[1, 0, 0, 0], [0, 0, 0, 1]], np.float32)
    same(client.infer("class", {"x": x})["y"], np.array([[1, 5], [4, 8]], np.float32))


def check_a_class_that_fails_shows_where(client, _):
    texts = ("AttributeError", "has no attribute 'Nothing'", "model.py(7): __init__")
    refused(lambda: client.load("broken_class"), *texts)


def check_files_that_are_no_models(client, _):
    refused(lambda: client.load("no_model"), "failed to load model 'no_model': ", "PytorchStreamReader", status=400)
    refused(lambda: client.load("no_file"), "unable to find '", "/no_file/1/model.pt' for model instance 'no_file'")


def check_configs_that_do_not_fit(client, _):
    refused(lambda: client.load("wrong_count"), "configuration expects 1 inputs, model provides 2")
    x = np.ones(2, np.float32)
    client.load("wrong_type")
    text = "configuration expects datatype TYPE_FP64 for output 'OUTPUT__0', model provides TYPE_FP32"
    refused(lambda: client.infer("wrong_type", {"x": x}), text)
    client.load("wrong_number")
    start = "The output OUTPUT__3 in the model configuration refers to an output index which doesn't exist. "
    refused(lambda: client.infer("wrong_number", {"x": x}), start + "This model has 1 outputs")


def check_an_error_of_the_model(client, _):
    client.load("wrong_shapes")
    x = np.ones(2, np.float32)
    refused(lambda: client.infer("wrong_shapes", {"x": x}), "PyTorch execute failure: ", status=500)
    refused(lambda: client.infer("wrong_type", {"x": x}), status=400)


if __name__ == "__main__":
    run(sys.modules[__name__], make)
