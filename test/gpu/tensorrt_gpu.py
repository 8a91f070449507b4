"""TensorRT engines on a real GPU; not part of npm test.

Run it on a machine with an NVIDIA GPU, with an interpreter that has tensorrt, torch and numpy, after npm run build:
    python3 test/gpu/tensorrt_gpu.py [--node node] [--main bin/nereid.js]
It builds engines, starts the server in explicit mode, loads them, and compares their answers with torch called here.
"""
import os

import numpy as np
import tensorrt as trt
import torch
from gpu_checks import ON_GPU, check, parse_options, run, used_mib, wait_for_memory
from v2_client import Failed, at_once, version_of  # gpu_checks knows where it is

WIDTH, HEIGHT = 64, 32
BATCH_MAX = 16
log = trt.Logger(trt.Logger.WARNING)


def build(path, name, fill, profile=None):
    """`fill` makes the layers; the engine goes where Triton looks for it."""
    builder = trt.Builder(log)
    flags = 0
    if hasattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED"):
        flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(flags)
    fill(network)
    config = builder.create_builder_config()
    if profile is not None:
        shapes = builder.create_optimization_profile()
        for tensor, (least, usual, most) in profile.items():
            shapes.set_shape(tensor, least, usual, most)
        config.add_optimization_profile(shapes)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise SystemExit("TensorRT did not build %s" % name)
    with open(os.path.join(path, "model.plan"), "wb") as file:
        file.write(plan)


def mark(network, name, tensor):
    tensor.name = name
    network.mark_output(tensor)


def dense(weights):
    """relu(x · weights), with rows of any number."""

    def fill(network):
        x = network.add_input("x", trt.float32, (-1, WIDTH))
        constant = network.add_constant((WIDTH, HEIGHT), weights).get_output(0)
        product = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, constant, trt.MatrixOperation.NONE)
        mark(network, "y", network.add_activation(product.get_output(0), trt.ActivationType.RELU).get_output(0))

    return fill


def add_sub(kind, shape):
    def fill(network):
        inputs = [network.add_input(name, kind, shape) for name in ("INPUT0", "INPUT1")]
        for name, operation in (("OUTPUT0", trt.ElementWiseOperation.SUM), ("OUTPUT1", trt.ElementWiseOperation.SUB)):
            mark(network, name, network.add_elementwise(*inputs, operation).get_output(0))

    return fill


WEIGHTS = np.random.default_rng(1).normal(size=(WIDTH, HEIGHT)).astype(np.float32)
DENSE_PROFILE = {"x": ((1, WIDTH), (4, WIDTH), (BATCH_MAX, WIDTH))}
PAIR_PROFILE = {name: ((1, 1), (8, 16), (8, 64)) for name in ("INPUT0", "INPUT1")}


def make(folder):
    path = version_of(folder, "dense", 'platform: "tensorrt_plan"\n')
    build(path, "dense", dense(WEIGHTS), DENSE_PROFILE)
    batching = "max_batch_size: 16\ndynamic_batching { max_queue_delay_microseconds: 100000 }\n"
    path = version_of(folder, "gathered", 'backend: "tensorrt"\n' + batching + ON_GPU % 1)
    build(path, "gathered", dense(WEIGHTS), DENSE_PROFILE)
    for name, kind in (("pair_int32", trt.int32), ("pair_fp16", trt.float16), ("pair_bf16", trt.bfloat16)):
        path = version_of(folder, name, 'backend: "tensorrt"\n' + ON_GPU % 1)
        build(path, name, add_sub(kind, (-1, -1)), PAIR_PROFILE)
    path = version_of(folder, "fixed", 'backend: "tensorrt"\n' + ON_GPU % 1)
    build(path, "fixed", add_sub(trt.float32, (2, 3)))
    path = version_of(folder, "too_many", 'backend: "tensorrt"\nmax_batch_size: 32\n' + ON_GPU % 1)
    build(path, "too_many", dense(WEIGHTS), DENSE_PROFILE)
    path = version_of(folder, "on_cpu", 'backend: "tensorrt"\ninstance_group [ { kind: KIND_CPU } ]\n')
    build(path, "on_cpu", dense(WEIGHTS), DENSE_PROFILE)
    path = version_of(folder, "no_plan", 'backend: "tensorrt"\n' + ON_GPU % 1)
    with open(os.path.join(path, "model.plan"), "wb") as file:
        file.write(b"this is no engine")


def relu(x):
    return torch.relu(torch.from_numpy(x).cuda() @ torch.from_numpy(WEIGHTS).cuda()).cpu().numpy()


def check_config(client):
    client.load("dense")
    config = client.config("dense")
    parts = lambda side: [(t["name"], t["data_type"], t["dims"]) for t in config[side]]  # noqa: E731
    check("inputs from the engine", parts("input"), [("x", "TYPE_FP32", [WIDTH])])
    check("outputs from the engine", parts("output"), [("y", "TYPE_FP32", [HEIGHT])])
    check("the largest batch is the profile's", config["max_batch_size"], BATCH_MAX)
    check("on the GPU without a word", config["instance_group"][0]["kind"], "KIND_GPU")


def check_answers(client):
    rng = np.random.default_rng(2)
    for rows in (1, 5, BATCH_MAX):
        x = rng.normal(size=(rows, WIDTH)).astype(np.float32)
        got = client.infer("dense", {"x": x})["y"]
        # Matrices may be multiplied in TF32.
        check("%d rows as torch" % rows, bool(np.allclose(got, relu(x), rtol=2e-2, atol=2e-2)), True)
    client.load("gathered")
    rows = [rng.normal(size=(1, WIDTH)).astype(np.float32) for _ in range(6)]
    answers = at_once([lambda row=row: client.infer("gathered", {"x": row})["y"] for row in rows])
    is_close = all(np.allclose(got, relu(row), rtol=2e-2, atol=2e-2) for got, row in zip(answers, rows))
    check("6 requests at once", is_close, True)
    runs = client.statistics("gathered")["execution_count"]
    check("in fewer than 6 executions", runs < 6, True)
    print("     %d executions" % runs)


def check_types(client):
    one = np.arange(12).reshape(3, 4)
    other = one[::-1] * 2
    for name, dtype in (("pair_int32", np.int32), ("pair_fp16", np.float16)):
        client.load(name)
        got = client.infer(name, {"INPUT0": one.astype(dtype), "INPUT1": other.astype(dtype)})
        check(name, (got["OUTPUT0"].tolist(), got["OUTPUT1"].tolist()), ((one + other).tolist(), (one - other).tolist()))
        check("its type", got["OUTPUT0"].dtype, np.dtype(dtype))
    client.load("pair_bf16")
    bits = lambda values: torch.from_numpy(values.copy()).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)  # noqa: E731
    got = client.infer("pair_bf16", {"INPUT0": ("BF16", bits(one)), "INPUT1": ("BF16", bits(other))})
    check("pair_bf16", got["OUTPUT0"].tolist(), bits(one + other).tolist())
    client.load("fixed")
    check("a fixed shape does not batch", client.config("fixed")["max_batch_size"], 0)
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    check("fixed", client.infer("fixed", {"INPUT0": x, "INPUT1": x})["OUTPUT0"].tolist(), (x + x).tolist())


def refusal(call):
    try:
        call()
    except Failed as error:
        return "%d %s" % (error.status, error.message)
    return "none"


def check_refusals(client):
    text = refusal(lambda: client.infer("dense", {"x": np.zeros((BATCH_MAX + 1, WIDTH), np.float32)}))
    check("too large a batch", "batch-size must be <= 16" in text, True)
    wide = np.zeros((2, 65), np.int32)
    text = refusal(lambda: client.infer("pair_int32", {"INPUT0": wide, "INPUT1": wide}))
    print("     outside of the profile: %s" % text)
    check("outside of the profile", text.startswith("400") or text.startswith("500"), True)
    ones = np.ones((1, 2), np.int32)
    got = client.infer("pair_int32", {"INPUT0": ones, "INPUT1": ones})["OUTPUT0"].tolist()
    check("and it goes on", got, [[2, 2]])
    for name in ("too_many", "on_cpu", "no_plan"):
        text = refusal(lambda name=name: client.load(name))
        print("     %s: %s" % (name, text))
        check("%s is refused" % name, text.startswith("400") or text.startswith("500"), True)


def check_all(client, _folder):
    print("tensorrt %s, torch %s, %s" % (trt.__version__, torch.__version__, torch.cuda.get_device_name(0)))
    relu(np.zeros((1, WIDTH), np.float32))
    before = used_mib()
    check_config(client)
    check_answers(client)
    check_types(client)
    check_refusals(client)
    loaded = used_mib()
    for name in ("dense", "gathered", "pair_int32", "pair_fp16", "pair_bf16", "fixed"):
        client.unload(name)
    after = wait_for_memory(before + 64)
    print("     MiB in use: %d before the loads, %d after, %d after the unloads" % (before, loaded, after))
    check("the unloads give all back", after - before < 64, True)


if __name__ == "__main__":
    run(parse_options(), make, check_all)
